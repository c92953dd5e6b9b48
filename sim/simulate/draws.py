"""Constants drawn from their errors: what else the measurements behind a calibration allow.

A constant is drawn from a normal distribution about its value with its standard error, cut at its bounds; those of an
engine or of a kernel together, as far as its profile says how their errors correlate: fits leave a kernel's time better
known than its constants. The draws are a Latin hypercube (McKay, Beckman and Conover, Technometrics 21 (1979)
239-245): each constant's N draws lie in its N equally likely slices, in an order of its own, before they are
correlated.

A constant's draws depend on the seed and its name alone, so that two deployments on one accelerator meet the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from sim.profiles.calibrated import Constant, Fit
from sim.profiles.library import load_calibrated_hardware
from sim.simulate.pools import ReadyPool
from sim.workload.streams import stream

__all__ = ["Draw", "drawn_pools"]

T = TypeVar("T")
Correlations = Mapping[Any, Mapping[Any, float]]
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
        error = wider * constant.stderr
        if not _is_unsure(constant):
            return constant
        return _at(self._share(name), constant, error)

    def together(
        self, name: str, constants: Mapping[T, Constant], correlations: Correlations, wider: float = 1.0
    ) -> dict[T, Constant]:
        """Return those of *constants* that are unsure, as drawn, with errors *wider* times what they say."""
        from scipy.special import ndtr, ndtri

        unsure = [each for each, constant in constants.items() if _is_unsure(constant)]
        scores = ndtri([self._share(f"{name} {each}") for each in unsure])
        shares = ndtr(_root_of(correlations, unsure) @ scores).tolist()
        return {
            each: _at(share, constants[each], wider * constants[each].stderr)
            for each, share in zip(unsure, shares, strict=True)
        }

    def _share(self, name: str) -> float:
        """Return the place between 0 and 1 of this draw, in a slice of its own."""
        self.names.add(name)
        random = stream(self.seed, f"draws of {name}")
        slices, places = random.permutation(self.count), random.random(self.count)
        return float((slices[self.number] + places[self.number]) / self.count)


def _is_unsure(constant: Constant) -> bool:
    low, high = constant.bounds
    return constant.stderr > 0 and low < high


def _at(share: float, constant: Constant, error: float) -> Constant:
    """Return *constant* at a *share* of its distribution, which ends at its bounds."""
    from scipy.special import ndtr, ndtri

    low, high = constant.bounds
    least, most = (ndtr((bound - constant.value) / error) for bound in (low, high))
    moved = float(ndtri(least + share * (most - least)))
    return constant.model_copy(update={"value": min(max(constant.value + error * moved, low), high)})


def _root_of(correlations: Correlations, names: Sequence[Any]) -> NDArray[np.float64]:
    """Return what makes correlated scores of independent ones, each of which keeps its variance.

    Numbers that were rounded may be no correlations of anything; then it is the root of the nearest that are.
    """
    table = np.eye(len(names))
    for first, row in correlations.items():
        for second, value in row.items():
            if first in names and second in names:
                at = names.index(first), names.index(second)
                table[at] = table[at[::-1]] = value
    values, vectors = np.linalg.eigh(table)
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(root / np.linalg.norm(root, axis=1, keepdims=True))


def drawn_pools(pools: Sequence[ReadyPool], draw: Draw) -> list[ReadyPool]:
    """Return *pools* on drawn constants of their kernels and engines; not those whose cost is the user's own line."""
    return [_drawn_pool(pool, draw) if pool.experiment.cost_model.kind == "roofline" else pool for pool in pools]


def _drawn_pool(pool: ReadyPool, draw: Draw) -> ReadyPool:
    experiment, setup = pool.experiment, pool.setup
    kernels, constants = load_calibrated_hardware(experiment.deployment.gpu, experiment.folder), setup.constants
    unused = _COLLECTIVES if experiment.deployment.parallelism.gpus == 1 else ()
    drawn = _drawn(kernels, kernels.name, draw, kernels.error_factor, unused)
    if constants is not None:
        name = f"{experiment.engine.kind} on {kernels.name}"
        own = draw.together(name, constants.constants, constants.correlations)
        constants = constants.model_copy(update={"constants": constants.constants | own})
    return replace(pool, setup=setup.with_constants(experiment, constants, drawn))


def _drawn(part: T, name: str, draw: Draw, wider: float, unused: Sequence[str] = ()) -> T:
    """Return *part* of a profile with every constant in it drawn, but for fields that are *unused*."""
    found: Any = part
    if isinstance(part, Constant):
        found = draw.of(name, part, wider)
    elif isinstance(getattr(part, "fit", None), Fit):
        constants = {each: value for each, value in part if isinstance(value, Constant)}  # type: ignore[attr-defined]
        found = part.model_copy(update=draw.together(name, constants, part.fit.correlations, wider))  # type: ignore[attr-defined]
    elif isinstance(part, BaseModel):
        fields = [field for field in type(part).model_fields if field not in unused]
        found = part.model_copy(
            update={each: _drawn(getattr(part, each), f"{name} {each}", draw, wider) for each in fields}
        )
    elif isinstance(part, dict):
        found = {key: _drawn(value, f"{name} {key}", draw, wider) for key, value in part.items()}
    return found  # type: ignore[no-any-return]
