"""By the time to first token."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from sim.autoscaler.base import Autoscaler, Snapshot, Window
from sim.units import Seconds

__all__ = ["TimeToFirstToken"]


class TimeToFirstToken(Autoscaler):
    """A percentile of the time to first token (`vllm:time_to_first_token_seconds`), of who got theirs of late.

    It tells of a queue when those in it have left it; and the time does not shrink as replicas become more, so that the
    formula of Kubernetes overshoots.
    """

    kind: Literal["ttft"] = "ttft"
    target_s: Seconds = Field(gt=0, description="What it should be [s].")
    percentile: float = Field(95.0, gt=0, le=100, description="Of the requests, the share within it [%].")
    window_s: Window = 60.0

    def wanted(self, seen: Sequence[Snapshot], current: int) -> int:
        """Return how many replicas would bring it to the target if it were inverse to their number."""
        last = seen[-1]
        times_s = sorted(time_s for one in self._window(seen) for time_s in one.ttft_s)
        if not times_s:
            return current
        value_s = times_s[max(math.ceil(len(times_s) * self.percentile / 100) - 1, 0)]
        return self._of_share(value_s, self.target_s, last, current)

    def _window(self, seen: Sequence[Snapshot]) -> list[Snapshot]:
        from_s, chosen = seen[-1].at_s - self.window_s, []
        for snapshot in reversed(seen):
            if snapshot.at_s <= from_s:
                break
            chosen.append(snapshot)
        return chosen
