"""What pools that prefill and pools that decode need to work together, decided and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sim.cluster import Port
from sim.experiment import Experiment
from sim.memory import kv_dtype_of
from sim.memory.footprint import KvFootprint
from sim.profiles.hardware import Hardware
from sim.router.disaggregation import Disaggregation
from sim.simulate.setup import Setup

if TYPE_CHECKING:
    from sim.simulate.pools import ReadyPool

__all__ = ["decided", "port_of"]


def decided(experiment: Experiment, pools: Sequence[ReadyPool]) -> Disaggregation | None:
    """Return how the pools of *experiment* work together, with nothing left open; None where none has a role.

    What the experiment leaves open, the engine of the first decode pool decides.

    Raises
    ------
    ConfigError
        If roles, engines or data types of pools do not go together, or replicas would come and go.
    """
    if not any(pool.role != "both" for pool in pools):
        if experiment.disaggregation is not None:
            raise experiment.error("disaggregation", "no pool has a role: write `role: prefill` and `role: decode`")
        return None
    if experiment.failures is not None:
        raise experiment.error("failures", "not simulated where pools prefill or decode only")
    if any(pool.experiment.autoscaler is not None for pool in pools):
        raise experiment.error("autoscaler", "not simulated where pools prefill or decode only")
    for service in {pool.service for pool in pools}:
        _check_roles(experiment, [pool for pool in pools if pool.service == service])
    written = experiment.disaggregation or Disaggregation()
    handover = next(pool for pool in pools if pool.role == "decode").setup.version.handover
    order = written.order or ("decode_first" if written.overlap else handover.order)
    return written.model_copy(update={"order": order, "first_token": written.first_token or handover.first_token})


def _check_roles(experiment: Experiment, pools: Sequence[ReadyPool]) -> None:
    """Check the pools of one model."""
    roles = {pool.role for pool in pools}
    if roles == {"both"}:
        return
    if roles != {"prefill", "decode"}:
        has = " and ".join(sorted(roles))
        raise experiment.error("pools", f"pools of one model have roles {has}: some must prefill, all others decode")
    kept = {pool.name: _kept(pool) for pool in pools}
    if len(set(kept.values())) > 1:
        types = ", ".join(f"{name} {dtype}" for name, dtype in kept.items())
        raise experiment.error("pools", f"keys and values have one type on both sides, not {types}")
    for pool in pools:
        if not pool.setup.engine.scheduler.disaggregates:
            kind = pool.setup.engine.scheduler.kind
            raise experiment.error("pools", f"{pool.name}: prefill and decode are not separated with scheduler {kind}")


def _kept(pool: ReadyPool) -> str:
    return kv_dtype_of(pool.setup.model, pool.experiment.deployment.quantization)


def port_of(experiment: Experiment, alone: Experiment, setup: Setup) -> Port:
    """Return what ties the replicas of the pool *alone* to the others; raise `ConfigError` for a link it lacks."""
    options, deployment = experiment.disaggregation or Disaggregation(), alone.deployment
    bytes_per_s = options.bytes_per_s or _bandwidth(setup.hardware, options.link)
    if bytes_per_s is None:
        missing = f"the profile of {setup.hardware.name} has no {options.link} bandwidth: write bytes_per_s"
        raise experiment.error("disaggregation.link" if experiment.disaggregation else "pools", missing)
    footprint = KvFootprint.of(setup.model, deployment.quantization, deployment.parallelism, setup.draft)
    return Port(footprint, options.efficiency * bytes_per_s)


def _bandwidth(hardware: Hardware, link: str) -> float | None:
    if link == "interconnect":
        return None if hardware.interconnect is None else hardware.interconnect.bytes_per_s
    return hardware.pcie_bytes_per_s if link == "pcie" else hardware.nic_bytes_per_s
