"""A limit of what is outstanding."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.admission.base import Admission, Verdict
from sim.request import Request
from sim.router import Fleet
from sim.router.fleet import Watcher

__all__ = ["QueueLimit"]


class QueueLimit(Admission):
    """Turns away what would be more than *max_outstanding* requests for each ready replica, on average.

    As `--max-concurrent-requests` of SGLang's gateway without its queue (`sgl-model-gateway/src/middleware.rs`).
    """

    kind: Literal["queue_limit"] = "queue_limit"
    max_outstanding: float = Field(gt=0, description="Requests in flight, times the replicas that are ready.")

    def judge(self, fleet: Fleet) -> Verdict:
        """Count what is outstanding."""
        total = _Outstanding(fleet)
        fleet.watch(total)

        def verdict(request: Request) -> str:
            if not fleet.ready:  # whoever comes waits at the gateway, and is what an autoscaler starts a replica for
                return ""
            limit = self.max_outstanding * len(fleet.ready)
            return "" if total.requests + 1 <= limit else f"HTTP 429: {total.requests} requests are outstanding"

        return verdict


class _Outstanding(Watcher):
    """Outstanding requests of all replicas that are ready."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._each = fleet, dict[int, int]()
        self.requests = 0

    def joined(self, index: int) -> None:
        """Count those of a new replica."""
        self.changed(index)

    def changed(self, index: int) -> None:
        """Count those of a replica anew."""
        count = self._fleet.loads[index].outstanding
        self.requests += count - self._each.get(index, 0)
        self._each[index] = count

    def left(self, index: int) -> None:
        """Count those of a replica no more."""
        self.requests -= self._each.pop(index)
