"""The pools of an experiment, each made ready like an experiment of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from sim import cluster
from sim.cluster import Port
from sim.experiment import MOST_GPUS, Experiment, Pool, experiment_of
from sim.failures import Loss, Topology
from sim.metrics.instances import InstanceRows
from sim.metrics.pools import PoolContext
from sim.metrics.rows import StrideRows
from sim.request import Request
from sim.router.disaggregation import Role
from sim.simulate.disaggregation import port_of
from sim.simulate.power import gpu_power
from sim.simulate.prices import gpu_price
from sim.simulate.setup import Setup, prepare
from sim.simulate.time_use import time_use_of
from sim.workload.drawn import Drawn
from sim.workload.streams import stream

__all__ = ["ReadyPool", "ask_for_services", "experiments_of", "ready_pools", "refuse_unknown_places"]

_DEPLOYMENT = ("gpu", "replicas", "parallelism", "quantization")


@dataclass(frozen=True, slots=True)
class ReadyPool:
    """A pool: the experiment that it would be alone, made ready.

    Attributes
    ----------
    service
        Number of the model that it serves among those of all pools, from 0.
    first
        Number of its first replica; with attention data parallel, of its first rank.
    port
        What ties its replicas to those of the other role, if it has one.
    """

    name: str
    experiment: Experiment
    setup: Setup
    service: int = 0
    first: int = 0
    role: Role = "both"
    port: Port | None = None

    @property
    def replicas(self) -> int:
        """What the router chooses among: replicas, or the attention ranks of all of them."""
        return self.most * self.setup.engine.attention_ranks

    @property
    def most_wanted(self) -> int:
        """Most replicas that are wanted at a time."""
        autoscaler = self.experiment.autoscaler
        return self.experiment.deployment.replicas if autoscaler is None else autoscaler.max_replicas

    @property
    def most(self) -> int:
        """Most replicas that there can be, those included that start or drain."""
        failures = self.experiment.failures
        return self.most_wanted + (0 if failures is None else failures.max_surge)

    def to_run(self) -> cluster.Pool:
        """Return it as the cluster runs it."""
        deployment, lifecycle = self.experiment.deployment, self.experiment.lifecycle
        return cluster.Pool(
            self.setup.engine,
            deployment.replicas,
            self.service,
            gpus=deployment.parallelism.gpus,
            most=self.most,
            cold_start_s=lifecycle.start_s(self.setup.model.weight_bytes(deployment.quantization)),
            grace_s=math.inf if lifecycle.grace_s is None else lifecycle.grace_s,
            role=self.role,
            port=self.port,
            autoscaler=self.experiment.autoscaler,
        )

    def context(
        self, strides: StrideRows, lives: InstanceRows | None = None, *, brief: bool = False
    ) -> PoolContext:
        """Return what the rows of a run do not tell of it; *brief*: neither price nor power nor where time goes."""
        deployment, engine = self.experiment.deployment, self.setup.engine
        speculative = self.experiment.engine.speculative
        context = PoolContext(
            name=self.name,
            first=self.first,
            replicas=self.replicas,
            num_gpus=self.most * deployment.parallelism.gpus,
            kv_blocks=engine.num_blocks,
            block_size=engine.block_size if engine.pages is None else math.inf,
            draft_tokens=speculative.mean_draft_tokens if speculative else 0.0,
            single_steps=engine.single_steps,
            gpu_price=None if brief else gpu_price(self.experiment),
            attention_ranks=engine.attention_ranks,
            lives=lives,
            link_bytes_per_s=0.0 if self.port is None else self.port.kv.ranks * self.port.bytes_per_s,
        )
        if brief:
            return context
        use = time_use_of(context.strides(strides), engine.cost)
        power = gpu_power(self.experiment, self.setup.hardware, use.by_resource)
        return replace(context, time_use=use, gpu_power=power)


def experiments_of(experiment: Experiment) -> list[tuple[str, Experiment]]:
    """Return each pool's name and the experiment that it would be alone.

    Raises
    ------
    ConfigError
        Two pools have one name, or a pool cannot be used, with its file and line.
    """
    if not experiment.pools:
        return [("", experiment)]
    found: dict[str, Experiment] = {}
    for place, pool in enumerate(experiment.pools):
        name = pool.name or f"pool{place}"
        if name in found:
            raise experiment.error(f"pools.{place}.name", f"there is another pool {name!r}")
        found[name] = _alone(experiment, pool, place)
    return list(found.items())


def _alone(experiment: Experiment, pool: Pool, place: int) -> Experiment:
    document = experiment.document
    for field, target in _targets(pool):
        document = document.graft(("pools", place, *field), target)
    for section in ("pools", "sweep", "disaggregation"):
        document = document.without(section)
    return experiment_of(document).model_copy(update={"seed": experiment.seed})


def _targets(pool: Pool) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what the pool writes, and where it stands in an experiment without pools."""
    for field in _DEPLOYMENT:
        if getattr(pool, field) is not None:
            yield (field,), f"deployment.{field}"
    for field in ("model", "autoscaler"):
        if getattr(pool, field) is not None:
            yield (field,), field
    if pool.engine is not None:
        yield from ((("engine", option), f"engine.{option}") for option in sorted(pool.engine.model_fields_set))


def ready_pools(experiment: Experiment) -> list[ReadyPool]:
    """Make every pool of *experiment* ready; raise as `prepare` does."""
    pools: list[ReadyPool] = []
    services: dict[str, int] = {}
    for place, (name, alone) in enumerate(experiments_of(experiment)):
        service = services.setdefault(alone.model, len(services))
        first = pools[-1].first + pools[-1].replicas if pools else 0
        _refuse_bounds(alone)
        setup = prepare(alone)
        role = experiment.pools[place].role if experiment.pools else None
        port = port_of(experiment, alone, setup) if role else None
        pools.append(ReadyPool(name, alone, setup, service, first, role or "both", port))
    _shares(experiment, pools)
    return pools


def _refuse_bounds(experiment: Experiment) -> None:
    """Raise `ConfigError` where a pool begins with more replicas than its autoscaler allows, or with too few."""
    autoscaler, replicas = experiment.autoscaler, experiment.deployment.replicas
    if autoscaler is None:
        return
    low, high = autoscaler.min_replicas, autoscaler.max_replicas
    if not low <= replicas <= high:
        message = f"{replicas}, where the autoscaler keeps {low} to {high}"
        raise experiment.error("deployment.replicas", message)
    gpus = high * experiment.deployment.parallelism.gpus
    if gpus > MOST_GPUS:
        message = f"{gpus:,} accelerators: at most {MOST_GPUS:,} are simulated"
        raise experiment.error("autoscaler.max_replicas", message)


def refuse_unknown_places(experiment: Experiment, pools: Sequence[ReadyPool]) -> None:
    """Raise `ConfigError` where an event of `failures` happens to what is not there."""
    if experiment.failures is None:
        return
    gpus = [pool.experiment.deployment.parallelism.gpus for pool in pools for _ in range(pool.most)]
    topology = Topology.of(gpus, experiment.failures.gpus_per_node)
    for place, event in enumerate(experiment.failures.events):
        which = getattr(event, "which", 0)
        what = event.what if isinstance(event, Loss) else "replica"
        if which >= topology.units(what):
            there = f"there are {topology.units(what)}, from 0"
            raise experiment.error(f"failures.events.{place}.which", f"no {what} has the number {which}: {there}")


def ask_for_services(experiment: Experiment, pools: Sequence[ReadyPool], requests: Sequence[Request]) -> None:
    """Let each of the *requests* ask for one of the models, by their shares."""
    shares = _shares(experiment, pools)
    if len(shares) == 1:
        return
    draws = stream(experiment.seed, "models").random(len(requests))
    bounds = list(accumulate(shares))[:-1]
    services = np.searchsorted(bounds, draws, side="right")
    if isinstance(requests, Drawn):
        requests.serve(services)
        return
    for request, service in zip(requests, services.tolist(), strict=True):
        request.service = service


def _shares(experiment: Experiment, pools: Sequence[ReadyPool]) -> list[float]:
    """Return the share of the requests by service; raise `ConfigError` where the pools do not say it."""
    shares = [0.0] * (1 + max(pool.service for pool in pools))
    if len(shares) == 1:
        _refuse_idle_shares(experiment)
        return [1.0]
    for written, pool in zip(experiment.pools, pools, strict=True):
        shares[pool.service] += written.share or 0.0
    if not 0.999 < sum(shares) < 1.001 or not all(shares):
        each = ", ".join(f"{share:g}" for share in shares)
        raise experiment.error("pools", f"the shares of {len(shares)} models must be above 0 and sum to 1, not {each}")
    return shares


def _refuse_idle_shares(experiment: Experiment) -> None:
    """Raise `ConfigError` where a pool writes a share and there is but one model to share the requests."""
    for place, pool in enumerate(experiment.pools):
        if pool.share is not None:
            message = "shares are of models, and all pools serve one: the router shares its requests"
            raise experiment.error(f"pools.{place}.share", message)
