"""Tiers of the KV cache, as the experiment writes them, in blocks and seconds."""

from __future__ import annotations

from sim.experiment import Experiment
from sim.kv import Pages, Tier
from sim.profiles.hardware import Hardware
from sim.profiles.model import Model
from sim.scheduler import Scheduler
from sim.units import GIB

__all__ = ["swap_of", "tiers_of"]

_SWAP_BYTES = 4 * GIB
"""--swap-space of vLLM before 0.11."""


def tiers_of(
    experiment: Experiment, model: Model, hardware: Hardware, pages: Pages | None, block_size: int
) -> tuple[Tier, ...]:
    """Return the tiers of one replica; with attention data parallel, of one rank.

    A block holds its tokens in all layers that keep every token, and each accelerator loads its share of it. Raises
    `ConfigError` for a bandwidth that is neither written nor known.
    """
    offload, parallelism = experiment.engine.kv_offload, experiment.deployment.parallelism
    if offload is None:
        return ()
    block_bytes = _block_bytes(experiment, model, pages, block_size)
    tiers = []
    for place, tier in enumerate(offload.tiers):
        bandwidth = tier.bandwidth or (None if place else hardware.pcie_bytes_per_s)
        if bandwidth is None:
            raise experiment.error(f"engine.kv_offload.tiers.{place}", "bandwidth is missing, and no profile knows it")
        blocks = int(tier.capacity / parallelism.dp // block_bytes)
        tiers.append(Tier(blocks, block_bytes / (parallelism.tp * parallelism.pp) / bandwidth))
    return tuple(tiers)


def swap_of(
    experiment: Experiment, model: Model, hardware: Hardware, scheduler: Scheduler, block_size: int
) -> Tier | None:
    """Return where preempted requests may leave their blocks; None where they are computed again.

    Raises `ConfigError` where the accelerator's link to the host is not known, or nobody swaps.
    """
    swaps = getattr(scheduler, "preemption_mode", "recompute") == "swap"
    space, parallelism = experiment.engine.swap_space, experiment.deployment.parallelism
    if not swaps and space is not None:
        raise experiment.error("engine.swap_space", f"{scheduler.kind} does not swap: see its preemption_mode")
    if not swaps:
        return None
    if hardware.pcie_bytes_per_s is None:
        raise experiment.error("engine.scheduler.preemption_mode", f"no link of {hardware.name} to its host is known")
    rank_bytes = _block_bytes(experiment, model, None, block_size) / (parallelism.tp * parallelism.pp)
    return Tier(int((_SWAP_BYTES if space is None else space) // rank_bytes), rank_bytes / hardware.pcie_bytes_per_s)


def _block_bytes(experiment: Experiment, model: Model, pages: Pages | None, block_size: int) -> float:
    """Return the keys and values of one block over all accelerators [B]; with *pages*, of the layers that keep all."""
    kv_dtype = experiment.deployment.quantization.kv_cache or model.checkpoint.kv_cache
    token_bytes = model.kv_bytes_per_token(kv_dtype)
    if pages is None:
        token_bytes += model.kv_bytes_per_token(kv_dtype, windowed=True)
    return token_bytes * block_size
