"""What an autoscaler is told of a pool, counted as it happens."""

from __future__ import annotations

from sim.autoscaler import Snapshot
from sim.cluster.keeper import Keeper
from sim.metrics.instances import InstanceState

__all__ = ["Meter"]


class Meter:
    """Counters of all replicas that a pool has had, as `Snapshot` describes them.

    They are right between two iterations; what strides under way have added until now, `snapshot` asks the replicas.
    """

    def __init__(self) -> None:
        self._busy_s = self._frontend_s = 0.0
        self._tokens = self._arrivals = 0
        self._ttft_s: list[float] = []

    def arrived(self, frontend_s: float) -> None:
        """Count a request, and the time until the engine sees it [s]."""
        self._arrivals += 1
        self._frontend_s += frontend_s

    def served(self, busy_s: float, tokens: int) -> None:
        """Count a stride of one server."""
        self._busy_s += busy_s
        self._tokens += tokens

    def first_token(self, ttft_s: float) -> None:
        """Note the time to first token of a request that has got it [s]."""
        self._ttft_s.append(ttft_s)

    def snapshot(self, at_s: float, keeper: Keeper, held: int, gpus: int) -> Snapshot:
        """Return the pool of *keeper*, whose replicas have *gpus* each, and for which *held* requests wait outside."""
        ready = keeper.servers(InstanceState.READY)
        under_way = [server.under_way() for server in (*ready, *keeper.servers(InstanceState.DRAINING))]
        busy_s = self._busy_s + sum([stride_s for stride_s, _ in under_way])
        ttft_s, self._ttft_s = tuple(self._ttft_s), []
        return Snapshot(
            at_s=at_s,
            ready=keeper.count(InstanceState.READY),
            starting=keeper.count(InstanceState.STARTING),
            gpus=gpus,
            waiting=held + sum([server.waiting for server in ready]),
            running=sum([server.running for server in ready]),
            kv_use=sum([server.kv_usage for server in ready]) / len(ready) if ready else 0.0,
            serving_s=keeper.serving_s(),
            busy_s=busy_s / keeper.ranks,
            frontend_s=self._frontend_s,
            tokens=self._tokens + sum([tokens for _, tokens in under_way]),
            arrivals=self._arrivals + held,
            ttft_s=ttft_s,
        )
