"""The replica with the fewest prompt tokens."""

from __future__ import annotations

from typing import ClassVar, Literal

from sim.router.base import Load
from sim.router.least import LeastOf

__all__ = ["LeastTokens"]


class LeastTokens(LeastOf):
    """The replica whose outstanding requests have the fewest prompt tokens; of several the first.

    Long prompts count for what they are, and answers, whose length nobody knows beforehand, do not count. As the active
    tokens that NVIDIA Dynamo's router keeps of each worker (`lib/llm/src/kv_router/sequence.rs`).
    """

    engines: ClassVar[bool] = False
    kind: Literal["least_tokens"] = "least_tokens"

    def measure(self, replica: Load) -> float:
        """Return the prompt tokens of the outstanding requests."""
        return replica.outstanding_tokens
