"""The constants of an engine from serving runs: least squares on the logarithms of latencies, drawn to prior values.

The maximum of the posterior under normal priors, lognormal ones of factors, and errors with heavy tails (``soft_l1``).
Every point is simulated in full, so that queueing, chunked prompts and lengths act as they do in a run. Kernel factors
have narrow priors at 1, but where nobody timed the kernels: fitted freely they help the model they were fitted on and
harm others.

How sure a constant is, is the larger of two: what the covariance gives with the noise that is assumed, and how far the
constant goes over runs drawn with replacement, where runs scatter more than that. ``python -m calibration.recovery``
counts how often the intervals hold constants that are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibration.fitting.points import Floats, Measured
from calibration.fitting.priors import stand_for_others
from calibration.fitting.problem import Problem
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import ConstantName, EngineConstants

__all__ = ["MOST_EVALUATIONS", "Fitted", "fit_constants", "likeliest"]

MOST_EVALUATIONS = 12
"""Of the residuals in one search. With four, fits end before they are at rest."""
_WORTH_WRITING = 0.05
_TELLS = 0.7  # posterior over prior standard deviation above which the data say next to nothing
_FROM_NEW_SLOPES = 5
"""Searches, each from where the last one ended."""
_WORTH_A_SEARCH = 0.01
"""Of the objective, which a search must have gained for another to follow."""
_NINE_IN_TEN = 1.645  # standard deviations of a normal distribution


@dataclass(frozen=True)
class Fitted:
    """What came of a fit.

    Attributes
    ----------
    problem, place, jacobian, residual
        The fit itself: the maximum of the posterior, in standard deviations of the priors, and slopes and residuals
        there.
    covariance
        Of the place, with the noise that is assumed of latencies.
    deviations
        Standard deviation of each constant, in those of its prior.
    cost
        Value of the objective.
    doubt
        How likely it is that host time stands otherwise to the GPU's than in this fit.
    source
        What was fitted to.
    """

    problem: Problem
    place: Floats
    jacobian: Floats
    residual: Floats
    covariance: Floats
    deviations: Floats
    cost: float
    source: str
    doubt: float = 0.0

    @cached_property
    def constants(self) -> EngineConstants:
        """The constants at the maximum of the posterior, with standard errors."""
        priors = self.problem.priors
        values = [float(value) for value in self.problem.values(self.place)]
        errors = [prior.error(*each) for prior, *each in zip(priors, self.deviations, values, strict=True)]
        constants = {
            prior.name: Constant(
                value=float(f"{value:.4g}") if value > 1e-3 * error else 0.0,
                stderr=float(f"{error:.2g}"),
                bounds=(prior.low, prior.high),
            )
            for prior, value, error in zip(priors, values, errors, strict=True)
        }
        rows: dict[ConstantName, dict[ConstantName, float]] = {}
        for (first, second), value in self.correlations.items():
            if abs(value) >= _WORTH_WRITING:
                rows.setdefault(first, {})[second] = round(value, 2)
        fit = Fit(source=self.source, rows=len(self.problem.points))
        return EngineConstants(overlapped=self.problem.overlapped, constants=constants, correlations=rows, fit=fit)

    @property
    def correlations(self) -> dict[tuple[ConstantName, ConstantName], float]:
        """Correlation of each two constants, by the covariance."""
        scale = np.sqrt(np.diag(self.covariance))
        table = self.covariance / np.outer(scale, scale)
        names = [prior.name for prior in self.problem.priors]
        return {(names[i], names[j]): float(table[i, j]) for i in range(len(names)) for j in range(i)}

    @property
    def intervals(self) -> Mapping[ConstantName, tuple[float, float]]:
        """Where each constant lies with a chance of 90 %."""
        reach = _NINE_IN_TEN * self.deviations
        ends = zip(self.problem.priors, self.place - reach, self.place + reach, strict=True)
        return {prior.name: (prior.at(float(low)), prior.at(float(high))) for prior, low, high in ends}

    @property
    def unknown(self) -> tuple[ConstantName, ...]:
        """Constants that the runs do not tell: they stay near their prior."""
        left = zip(self.problem.priors, self.deviations, strict=True)
        return tuple(prior.name for prior, deviation in left if deviation > _TELLS)

    def without(self, left_out: Callable[[Measured], bool]) -> EngineConstants:
        """Return the constants without the runs that are *left_out*: one Gauss-Newton step from the whole fit."""
        chosen = np.array([not left_out(point) for point in self.problem.points])
        owners = self.problem.owners()
        weights = np.where(owners < 0, True, chosen[owners]).astype(float)
        normal = self.jacobian.T @ (self.jacobian * weights[:, None])
        step = np.linalg.solve(normal, self.jacobian.T @ (self.residual * weights))
        return self.problem.constants(np.asarray(self.place - step))


def fit_constants(
    problem: Problem,
    source: str,
    max_evaluations: int = MOST_EVALUATIONS,
    near: EngineConstants | None = None,
) -> Fitted:
    """Fit the constants of *problem*, beginning *near* others if there are any."""
    place, jacobian = _at_rest(problem, _start(problem) if near is None else problem.place(near), max_evaluations)
    residual = problem.residual(place)
    covariance = np.linalg.inv(jacobian.T @ jacobian).astype(np.float64)
    return Fitted(
        problem=problem,
        place=place,
        jacobian=jacobian,
        residual=residual,
        covariance=covariance,
        deviations=np.maximum(np.sqrt(np.diag(covariance)), _scatter(problem, jacobian, residual)),
        cost=_cost(residual),
        source=source,
    )


def _at_rest(problem: Problem, place: Floats, max_evaluations: int) -> tuple[Floats, Floats]:
    """Return where searches from *place* come to rest, and the slopes there, or so near that it is all the same."""
    from scipy.optimize import least_squares

    for _ in range(_FROM_NEW_SLOPES):
        slopes = _Slopes(problem, place)
        before = _cost(slopes.residual)
        found = least_squares(
            problem.residual,
            place,
            jac=slopes.after,
            bounds=problem.bounds(),
            method="dogbox",  # the prior means of some constants lie on their bounds
            ftol=1e-3,
            xtol=1e-3,
            max_nfev=max_evaluations,
        )
        place = np.asarray(found.x)
        if found.cost > (1 - _WORTH_A_SEARCH) * before:
            break
    return place, slopes.first


def _cost(residual: Floats) -> float:
    return float(np.sum(residual**2) / 2)


class _Slopes:
    """Slopes along a search: simulated where it begins, and corrected by what each step shows (Broyden's update).

    Slopes that are simulated at each step cost three times as much and lead no further.
    """

    def __init__(self, problem: Problem, place: Floats) -> None:
        self.problem, self.place, self.residual = problem, place, problem.residual(place)
        self.first = self.last = problem.jacobian(place)

    def after(self, place: Floats) -> Floats:
        """Return the slopes at *place*, the next of the search."""
        step, residual = place - self.place, self.problem.residual(place)
        if step.any():
            missed = residual - self.residual - self.last @ step
            self.last = self.last + np.outer(missed, step) / (step @ step)
            self.place, self.residual = place.copy(), residual
        return self.last


def likeliest(tried: Sequence[Fitted]) -> Fitted:
    """Return the fit of least cost among several of the same runs; its errors hold what the others say, by their odds.

    The odds are how likely runs and constants are at each fit's maximum.
    """
    best = min(tried, key=lambda fitted: fitted.cost)
    odds = np.array([np.exp(best.cost - fitted.cost) for fitted in tried])
    variances = np.array([fitted.deviations**2 + (fitted.place - best.place) ** 2 for fitted in tried])
    return replace(best, deviations=np.sqrt(odds @ variances / odds.sum()), doubt=1 - 1 / float(odds.sum()))


def _start(problem: Problem) -> Floats:
    """Return where the fit begins: at the priors' means, or where kernels are so much slower that runs fit better.

    Kernels that nobody timed may take ten times as long, from where the slopes at the means lead nowhere.
    """
    slower = np.array([-1.0 if prior.name in ("compute_factor", "memory_factor") else 0.0 for prior in problem.priors])
    starts = [0.0 * slower]
    if any(prior.name == "memory_factor" and stand_for_others(prior.deviation) for prior in problem.priors):
        starts += [deviations * slower for deviations in (1.0, 2.0, 3.0, 4.0)]
    low, high = problem.bounds()
    inside = [np.clip(start, low, high) for start in starts]
    return min(inside, key=lambda start: float(np.sum(problem.residual(start) ** 2))) if len(inside) > 1 else inside[0]


def _scatter(problem: Problem, jacobian: Floats, residual: Floats, draws: int = 200) -> Floats:
    """Return how far constants go over runs drawn with replacement, each draw one Newton step, in prior deviations.

    The means of the priors are drawn as well: else what the runs do not tell would look certain. Runs lie nearer to the
    constants that were fitted to them than to the true ones, by as much as they told of these.
    """
    random, owners, runs = np.random.default_rng(1), problem.owners(), len(problem.points)
    of_runs = owners >= 0
    length = 1 + residual**2 / 2  # sqrt(1 + error^2) of the error behind a tamed residual
    curvature = np.where(of_runs, 2 / (length * (length + 1)), 1.0)
    hessian = jacobian.T @ (jacobian * curvature[:, None])
    told = len(problem.priors) - float(np.trace(np.linalg.inv(hessian)))
    wider = np.sqrt(runs / max(runs - told, 1.0))
    steps = []
    for _ in range(draws):
        weights = np.where(of_runs, np.bincount(random.integers(runs, size=runs), minlength=runs)[owners], 1)
        pull = np.where(of_runs, wider * (weights - 1) * residual, random.normal(size=len(owners)))
        hessian = jacobian.T @ (jacobian * (curvature * weights)[:, None])
        steps.append(np.linalg.solve(hessian, jacobian.T @ pull))
    return np.asarray(np.sqrt(np.mean(np.square(steps), axis=0)))
