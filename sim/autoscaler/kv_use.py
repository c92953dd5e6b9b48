"""By the use of the KV cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from sim.autoscaler.base import Autoscaler, Share, Snapshot

__all__ = ["KvUse"]


class KvUse(Autoscaler):
    """Share of the KV cache that running requests hold, on average over replicas (`vllm:kv_cache_usage_perc`)."""

    kind: Literal["kv_use"] = "kv_use"
    target: Share = Field(0.7, description="Share that should be in use.")

    def wanted(self, seen: Sequence[Snapshot], current: int) -> int:
        """Return how many replicas bring it to the target."""
        return self._of_share(seen[-1].kv_use, self.target, seen[-1], current)
