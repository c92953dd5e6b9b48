"""By how busy accelerators are said to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from sim.autoscaler.base import Autoscaler, Share, Snapshot, Window, growth

__all__ = ["GpuUtilization"]


class GpuUtilization(Autoscaler):
    """Share of the time in which any kernel runs (`DCGM_FI_DEV_GPU_UTIL`): misleading.

    One request that decodes keeps it near 100 %, a full batch no higher, so it tells some load from none and no more.
    """

    kind: Literal["gpu_utilization"] = "gpu_utilization"
    target: Share = Field(0.8, description="Share that should be busy.")
    window_s: Window = 60.0

    def wanted(self, seen: Sequence[Snapshot], current: int) -> int:
        """Return how many replicas bring it to the target."""
        serving_s, _ = growth(seen, lambda snapshot: snapshot.serving_s, self.window_s)
        busy_s, _ = growth(seen, lambda snapshot: snapshot.busy_s, self.window_s)
        return self._of_share(busy_s / serving_s, self.target, seen[-1], current) if serving_s else current
