"""The replica whose engine has the shortest queue."""

from __future__ import annotations

from typing import ClassVar, Literal

from sim.router.base import Load
from sim.router.least import LeastOf

__all__ = ["QueueDepth"]


class QueueDepth(LeastOf):
    """The replica with the smallest sum of four times the requests that wait in its engine and those that run.

    As vLLM's own balancer of data parallel engines (`vllm/v1/engine/core_client.py`, `DPLBAsyncMPClient`), which gets
    reports every 0.1 s at most, and counts what it sends in between as waiting. Of several it takes the first.
    """

    per_request: ClassVar[float] = 4.0
    kind: Literal["queue_depth"] = "queue_depth"

    def measure(self, replica: Load) -> float:
        """Return the score of vLLM's load balancer."""
        return 4 * replica.waiting + replica.running
