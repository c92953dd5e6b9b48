"""By the host's processors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from sim.autoscaler.base import Autoscaler, Share, Snapshot, Window, growth

__all__ = ["CpuUtilization"]


class CpuUtilization(Autoscaler):
    """Share of a replica's processor cores in use, what Kubernetes scales by where nothing else is said: misleading.

    While an iteration runs, the engine's core process and one worker for each accelerator keep a core each, since they
    wait for the accelerator in a loop; HTTP and tokenisation come on top. So a full batch uses hardly more than one
    request does, and no load reaches a usual target: with 8 cores and one accelerator it stays near 25 %.
    """

    kind: Literal["cpu_utilization"] = "cpu_utilization"
    target: Share = Field(0.8, description="Share that should be in use.")
    cores_per_gpu: float = Field(8.0, gt=0, description="Cores that a replica asks for, for each accelerator.")
    window_s: Window = 60.0

    def wanted(self, seen: Sequence[Snapshot], current: int) -> int:
        """Return how many replicas bring it to the target."""
        last = seen[-1]
        serving_s, _ = growth(seen, lambda snapshot: snapshot.serving_s, self.window_s)
        cpu_s, _ = growth(seen, lambda one: (1 + one.gpus) * one.busy_s + one.frontend_s, self.window_s)
        cores = self.cores_per_gpu * last.gpus
        return self._of_share(cpu_s / (serving_s * cores), self.target, last, current) if serving_s else current
