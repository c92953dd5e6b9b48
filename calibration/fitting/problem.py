"""Residuals of runs as a function of the constants of an engine, and their slopes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibration.fitting.points import Floats, Latencies, Measured, predict, scaled_errors
from calibration.fitting.priors import Prior
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import ConstantName, EngineConstants

__all__ = ["Problem"]

_STEP = 0.5
"""Of the prior's standard deviation, for slopes. Those over short steps follow the grain of scheduling, which leads
searches astray and looks like knowledge."""
_OF_WHAT_IS_ADDED = 0.1  # needs no simulation, and so has no grain


@dataclass(slots=True)
class Problem:
    """Residuals of *points* as a function of the constants, in units of their prior standard deviations."""

    points: Sequence[Measured]
    priors: Sequence[Prior]
    overlapped: bool | None = None
    on_simulated: Callable[[], None] = lambda: None
    """Called after each round of simulations; what it raises ends the fit."""
    _known: dict[bytes, list[Latencies]] = field(default_factory=dict, repr=False)

    def constants(self, place: Floats) -> EngineConstants:
        """Return the constants at *place*: how many standard deviations each is from its prior mean."""
        values = {
            prior.name: Constant(value=float(value), bounds=(prior.low, prior.high))
            for prior, value in zip(self.priors, self.values(place), strict=True)
        }
        return EngineConstants(overlapped=self.overlapped, constants=values, fit=Fit(source="trial"))

    def values(self, place: Floats) -> Floats:
        """Return the constants in their own units."""
        return np.array([prior.at(float(at)) for prior, at in zip(self.priors, place, strict=True)])

    def place(self, constants: EngineConstants) -> Floats:
        """Return where *constants* are, within the bounds."""
        values = [constants.value(prior.name, prior.mean) for prior in self.priors]
        return np.clip([prior.place(value) for prior, value in zip(self.priors, values, strict=True)], *self.bounds())

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the lowest and highest place."""
        ends = [(prior.place(prior.low), prior.place(prior.high)) for prior in self.priors]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    def simulated(self, places: Sequence[Floats]) -> list[list[Latencies]]:
        """Return for each place the predicted latencies of every point."""
        found = predict([(point, at) for at in map(self.constants, places) for point in self.points])
        count = len(self.points)
        self.on_simulated()
        return [found[start : start + count] for start in range(0, len(found), count)]

    def residual(self, place: Floats) -> Floats:
        """Return the tamed log errors of all points at *place*, and *place* itself: the normal priors."""
        return self._residual(self._at(place), place)

    def _at(self, place: Floats) -> list[Latencies]:
        """Return the predicted latencies of every point at *place*, simulated once."""
        key = place.tobytes()
        if key not in self._known:
            self._known[key] = self.simulated([place])[0]
        return self._known[key]

    def jacobian(self, place: Floats) -> Floats:
        """Return the forward differences of `residual`, inward where a bound is near.

        A request delay and a stream lag add to the time to the first token and change next to nothing else, so that
        they need no simulation of their own.
        """
        _, high = self.bounds()
        widths = np.array([_OF_WHAT_IS_ADDED if prior.name in _ADDED else _STEP for prior in self.priors])
        steps = np.diag(np.where(place + widths > high, -widths, widths))
        differenced = [index for index, prior in enumerate(self.priors) if prior.name not in _ADDED]
        base, moved = self._at(place), self.simulated([place + steps[index] for index in differenced])
        after = dict(zip(differenced, moved, strict=True))
        shift = self.values(place + steps.sum(axis=0)) - self.values(place)
        columns = []
        for index, prior in enumerate(self.priors):
            latencies = after[index] if index in after else self._shifted(base, prior.name, shift[index])
            column = self._residual(latencies, place + steps[index]) - self._residual(base, place)
            columns.append(column / steps[index, index])
        return np.stack(columns, axis=1)

    def _residual(self, latencies: Sequence[Latencies], place: Floats) -> Floats:
        errors = [scaled_errors(point, found) for point, found in zip(self.points, latencies, strict=True)]
        return np.concatenate([_tamed(np.concatenate(errors)), place])

    def _shifted(self, latencies: Sequence[Latencies], name: ConstantName, shift: float) -> list[Latencies]:
        """Return *latencies* with first and last tokens later by what *shift* of the constant *name* adds."""
        shifted = []
        for point, found in zip(self.points, latencies, strict=True):
            later_ms = shift * _ADDED[name](point, found)
            changed = {metric: found[metric] + later_ms for metric in found if not metric.startswith(_UNMOVED)}
            shifted.append(found | changed)
        return shifted

    def owners(self) -> NDArray[np.int64]:
        """Return the number of the point behind each residual; -1 for the priors."""
        owners = [index for index, point in enumerate(self.points) for _ in point.measured]
        return np.array(owners + [-1] * len(self.priors))


def _tamed(errors: Floats) -> Floats:
    """Return residuals whose squares are the ``soft_l1`` loss of *errors*: outliers count linearly."""
    return np.asarray(np.sign(errors) * np.sqrt(2 * (np.sqrt(1 + errors**2) - 1)))


_ADDED: dict[ConstantName, Callable[[Measured, Latencies], float]] = {
    "delay_fixed_s": lambda point, found: 1e3,
    "delay_per_prompt_token_s": lambda point, found: 1e3 * (point.case.number("input_len") or 0.0),
    "stream_lag_iterations": lambda point, found: found.get("tpot_mean_ms", 0.0),
}
"""Constants that add to the time to the first token, and how much one unit of them adds [ms]."""


_UNMOVED = ("tpot", "itl", "step")
