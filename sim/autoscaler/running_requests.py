"""By the requests in the batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from sim.autoscaler.base import Autoscaler, Snapshot

__all__ = ["RunningRequests"]


class RunningRequests(Autoscaler):
    """Admitted requests, for each replica (`vllm:num_requests_running`): blind to a queue behind a full batch."""

    kind: Literal["running_requests"] = "running_requests"
    target: float = Field(gt=0, description="Requests that each replica should run.")

    def wanted(self, seen: Sequence[Snapshot], current: int) -> int:
        """Return how many replicas run no more than that."""
        return self._of_total(seen[-1].running, self.target, current)
