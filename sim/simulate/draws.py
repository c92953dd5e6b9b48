"""Constants drawn from their errors: what else the measurements behind a calibration allow.

Each constant is drawn by itself, from a normal distribution about its value with its standard error, cut at its bounds.
The calibrated profiles do not record how errors go together; independent draws spread a sum of kernels' times rather
too far than too little, since fits leave sums better known than their parts. The draws are a Latin hypercube (McKay,
Beckman and Conover, Technometrics 21 (1979) 239-245): each constant's N draws lie in its N equally likely slices, in an
order of its own.

A constant's draws depend on the seed and its name alone, so that two deployments on one accelerator meet the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from sim.profiles.calibrated import Constant
from sim.profiles.library import load_calibrated_hardware
from sim.simulate.pools import ReadyPool
from sim.workload.streams import stream

__all__ = ["Draw", "drawn_pools"]

T = TypeVar("T")
_COLLECTIVES = ("all_reduce", "bus_all_reduce")


@dataclass(slots=True)
class Draw:
    """The draw *number*, from 0, of *count*; *names* are the constants that it was asked for."""

    seed: int
    number: int
    count: int
    names: set[str] = field(default_factory=set)

    def of(self, name: str, constant: Constant, wider: float = 1.0) -> Constant:
        """Return *constant* as drawn, its error *wider* times what it says; as it is if that is nought."""
        from scipy.special import ndtr, ndtri

        error = wider * constant.stderr
        low, high = constant.bounds
        if error == 0 or low == high:
            return constant
        self.names.add(name)
        below, above = ((bound - constant.value) / error for bound in (low, high))
        least, most = ndtr(below), ndtr(above)
        moved = float(ndtri(least + self._share(name) * (most - least)))
        return constant.model_copy(update={"value": min(max(constant.value + error * moved, low), high)})

    def _share(self, name: str) -> float:
        """Return the place between 0 and 1 of this draw, in a slice of its own."""
        random = stream(self.seed, f"draws of {name}")
        slices, places = random.permutation(self.count), random.random(self.count)
        return float((slices[self.number] + places[self.number]) / self.count)


def drawn_pools(pools: Sequence[ReadyPool], draw: Draw) -> list[ReadyPool]:
    """Return *pools* on drawn constants of their kernels and engines; not those whose cost is the user's own line."""
    return [_drawn_pool(pool, draw) if pool.experiment.cost_model.kind == "roofline" else pool for pool in pools]


def _drawn_pool(pool: ReadyPool, draw: Draw) -> ReadyPool:
    experiment, setup = pool.experiment, pool.setup
    kernels, constants = load_calibrated_hardware(experiment.deployment.gpu, experiment.folder), setup.constants
    unused = _COLLECTIVES if experiment.deployment.parallelism.gpus == 1 else ()
    drawn = _drawn(kernels, kernels.name, draw, kernels.error_factor, unused)
    if constants is not None:
        constants = _drawn(constants, f"{experiment.engine.kind} on {kernels.name}", draw, 1.0)
    return replace(pool, setup=setup.with_constants(experiment, constants, drawn))


def _drawn(part: T, name: str, draw: Draw, wider: float, unused: Sequence[str] = ()) -> T:
    """Return *part* of a profile with every constant in it drawn, but for fields that are *unused*."""
    found: Any = part
    if isinstance(part, Constant):
        found = draw.of(name, part, wider)
    elif isinstance(part, BaseModel):
        fields = [field for field in type(part).model_fields if field not in unused]
        found = part.model_copy(
            update={each: _drawn(getattr(part, each), f"{name} {each}", draw, wider) for each in fields}
        )
    elif isinstance(part, dict):
        found = {key: _drawn(value, f"{name} {key}", draw, wider) for key, value in part.items()}
    return found  # type: ignore[no-any-return]
