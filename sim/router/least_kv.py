"""The replica with the emptiest KV cache."""

from __future__ import annotations

from typing import Literal

from sim.router.base import Load
from sim.router.least import LeastOf

__all__ = ["LeastKv"]


class LeastKv(LeastOf):
    """The replica whose running requests hold the smallest share of its KV blocks; of several the first.

    As AIBrix's `least-kv-cache` (`pkg/plugins/gateway/algorithms/least_kv_cache.go`). Requests that wait hold no
    blocks: behind full caches it does not see queues.
    """

    kind: Literal["least_kv"] = "least_kv"

    def measure(self, replica: Load) -> float:
        """Return the share of blocks in use."""
        return replica.kv_usage

    def falls(self, replica: Load) -> bool:
        """Tell whether windows of attention leave blocks behind."""
        return replica.kv_falls
