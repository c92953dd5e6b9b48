"""By the tokens that are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from sim.autoscaler.base import Autoscaler, Snapshot, Window, growth

__all__ = ["TokensPerSecond"]


class TokensPerSecond(Autoscaler):
    """Tokens of prompts and answers computed in a second, for each replica: what is served, not what is asked for."""

    kind: Literal["tokens_per_s"] = "tokens_per_s"
    target: float = Field(gt=0, description="Tokens that each replica should compute in a second.")
    window_s: Window = 60.0

    def wanted(self, seen: Sequence[Snapshot], current: int) -> int:
        """Return how many replicas compute no more than that."""
        tokens, time_s = growth(seen, lambda snapshot: snapshot.tokens, self.window_s)
        return self._of_total(tokens / time_s, self.target, current) if time_s else current
