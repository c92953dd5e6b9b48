"""By the requests that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from sim.autoscaler.base import Autoscaler, Snapshot

__all__ = ["QueueDepth"]


class QueueDepth(Autoscaler):
    """Requests that are not answered, for each replica: those in the batch and those that wait.

    So counts the concurrency of Knative. Without *running* it is `vllm:num_requests_waiting`, for which vLLM's
    production stack takes a target of 5; but an empty queue does not tell a full batch from an idle replica, so that
    replicas are taken away until a queue is back.
    """

    kind: Literal["queue_depth"] = "queue_depth"
    target: float = Field(gt=0, description="Requests that there may be for each replica.")
    running: bool = Field(True, description="Count the requests that run, too.")

    def wanted(self, seen: Sequence[Snapshot], current: int) -> int:
        """Return how many replicas have no more than that."""
        last = seen[-1]
        return self._of_total(last.waiting + (last.running if self.running else 0), self.target, current)
