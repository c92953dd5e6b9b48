"""The nearest changes to a deployment with which it would fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sim.memory.deployment import Deployment
from sim.memory.plan import MemoryPlan, plan
from sim.profiles.hardware import Hardware
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Dtype, bytes_per_element

__all__ = ["nearest_fits", "smallest_tp"]

_PRECISIONS: tuple[Dtype, ...] = ("fp8", "int4")
_UTILIZATION = 0.95  # what engines still start with on a card of their own


def nearest_fits(made: MemoryPlan, cards: Iterable[Hardware] = (), limit: int = 5) -> list[str]:
    """Return changes that make an infeasible plan fit, the least first: each alone, at most *limit*.

    Parameters
    ----------
    cards
        Other accelerators to try with the same parallelism.
    """
    changes = (*_own_changes(made), *_other_cards(made.deployment, cards))
    return list(changes)[:limit]


def _own_changes(made: MemoryPlan) -> Iterator[str]:
    deployment = made.deployment
    limits = deployment.limits
    longest = made.longest_sequence
    if 1024 <= longest < limits.max_model_len:
        yield f"max_model_len {longest:,}"
    utilization = limits.gpu_memory_utilization
    if utilization is not None and utilization < _UTILIZATION:
        more = replace(limits, gpu_memory_utilization=_UTILIZATION)
        if _fits(replace(deployment, limits=more)):
            yield f"gpu_memory_utilization {_UTILIZATION}"
    if held := made.num_blocks // (made.blocks_of(limits.max_model_len) or 1):
        yield f"{held} sequence{'s' if held > 1 else ''} of {limits.max_model_len:,} tokens at once"
    yield from (f"tp {tp}" for tp in _near_tp(made))
    yield from _lower_precision(deployment)


def _fits(deployment: Deployment) -> bool:
    return plan(deployment).fits


def _near_tp(made: MemoryPlan) -> list[int]:
    """Return the smallest tp that fits; where the one asked for cannot be cut, the nearest on either side."""
    if not made.obstacles:
        smallest = smallest_tp(made.deployment)
        return [] if smallest is None else [smallest]
    fitting, asked = list(_fitting_tp(made.deployment)), made.deployment.parallelism.tp
    below, above = [tp for tp in fitting if tp < asked], [tp for tp in fitting if tp > asked]
    return below[-1:] + above[:1]


def smallest_tp(deployment: Deployment) -> int | None:
    """Return the smallest tensor parallelism within a node with which it fits; None if there is none."""
    return next(_fitting_tp(deployment), None)


def _fitting_tp(deployment: Deployment) -> Iterator[int]:
    for tp in range(1, deployment.hardware.gpus_per_node + 1):
        changed = replace(deployment, parallelism=_with_tp(deployment.parallelism, tp))
        if _fits(changed):
            yield tp


def _with_tp(parallelism: Parallelism, tp: int) -> Parallelism:
    """Return *parallelism* with *tp* ranks; experts that were whole on every rank stay so."""
    all_ranks = parallelism.ep > 1 and parallelism.ep == parallelism.tp * parallelism.dp
    ep = tp * parallelism.dp if all_ranks else parallelism.ep
    return parallelism.model_copy(update={"tp": tp, "ep": ep})


def _lower_precision(deployment: Deployment) -> Iterator[str]:
    model, asked = deployment.model, deployment.quantization
    widest = max(bytes_per_element(model.dtype_of(part, asked)) for part in ("attention", "mlp", "experts"))
    for dtype in _PRECISIONS:
        weights = asked.model_copy(update={"weights": dtype, "attention": None, "mlp": None, "experts": None})
        if bytes_per_element(dtype) < widest and _fits(replace(deployment, quantization=weights)):
            yield f"{dtype} weights"
            return


def _other_cards(deployment: Deployment, cards: Iterable[Hardware]) -> Iterator[str]:
    """Name the two smallest cards on which it fits, of the same vendor and no slower to read if there are."""
    larger = [card for card in cards if card.visible_memory_bytes > deployment.hardware.visible_memory_bytes]
    own = deployment.hardware

    def farther(card: Hardware) -> tuple[bool, bool, float]:
        slower = card.memory_bytes_per_s < own.memory_bytes_per_s
        return card.vendor != own.vendor, slower, card.visible_memory_bytes

    larger.sort(key=farther)
    fitting = (card for card in larger if _fits(replace(deployment, hardware=card)))
    for _, card in zip(range(2), fitting, strict=False):
        yield f"{deployment.parallelism.gpus} x {card.name}"
