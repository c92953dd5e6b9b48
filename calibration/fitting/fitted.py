"""The constants of an engine from serving runs: least squares on the logarithms of latencies, drawn to prior values.

The maximum of the posterior under normal priors, lognormal ones of factors, and errors with heavy tails (``soft_l1``).
Every point is simulated in full, so that queueing, chunked prompts and lengths act as they do in a run. Kernel factors
have narrow priors at 1, but where nobody timed the kernels: fitted freely they help the model they were fitted on and
harm others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from calibration.fitting.points import Floats, Measured
from calibration.fitting.priors import stand_for_others
from calibration.fitting.problem import Problem
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import ConstantName, EngineConstants

__all__ = ["MOST_EVALUATIONS", "Fitted", "fit_constants"]

MOST_EVALUATIONS = 4
"""Of the residuals; a Jacobian is evaluated as often at most."""
_WORTH_WRITING = 0.05
_TELLS = 0.7  # posterior over prior standard deviation above which the data say next to nothing


@dataclass(frozen=True, slots=True)
class Fitted:
    """What came of a fit.

    Attributes
    ----------
    constants
        At the maximum of the posterior, with standard errors.
    correlations
        Of the constants, by the covariance from the Jacobian.
    bootstrap
        5 % and 95 % quantile of each constant over runs drawn with replacement; each draw is one Gauss-Newton step.
    unknown
        Constants that the runs do not tell: they stay near their prior.
    cost
        Value of the objective.
    problem, place, jacobian, residual
        The fit itself.
    """

    constants: EngineConstants
    correlations: Mapping[tuple[ConstantName, ConstantName], float]
    bootstrap: Mapping[str, tuple[float, float]]
    unknown: tuple[str, ...]
    cost: float
    problem: Problem
    place: Floats
    jacobian: Floats
    residual: Floats

    def without(self, left_out: Callable[[Measured], bool]) -> EngineConstants:
        """Return the constants without the runs that are *left_out*: one Gauss-Newton step from the whole fit."""
        chosen = np.array([not left_out(point) for point in self.problem.points])
        owners = self.problem.owners()
        weights = np.where(owners < 0, True, chosen[owners]).astype(float)
        return self.problem.constants(_step(self.place, self.jacobian, self.residual, weights))


def fit_constants(problem: Problem, source: str, max_evaluations: int = MOST_EVALUATIONS) -> Fitted:
    """Fit the constants of *problem*."""
    from scipy.optimize import least_squares

    found = least_squares(
        problem.residual,
        _start(problem),
        jac=problem.jacobian,
        bounds=problem.bounds(),
        method="dogbox",  # the prior means of some constants lie on their bounds
        ftol=1e-3,
        xtol=1e-3,
        max_nfev=max_evaluations,
    )
    jacobian, residual = np.asarray(found.jac), np.asarray(found.fun)
    covariance = np.linalg.inv(jacobian.T @ jacobian).astype(np.float64)
    deviations, correlations = np.sqrt(np.diag(covariance)), _correlations(problem, covariance)
    return Fitted(
        constants=_published(problem, found.x, deviations, correlations, source),
        correlations=correlations,
        bootstrap=_bootstrap(problem, found.x, jacobian, residual),
        unknown=tuple(prior.name for prior, left in zip(problem.priors, deviations, strict=True) if left > _TELLS),
        cost=float(found.cost),
        problem=problem,
        place=found.x,
        jacobian=jacobian,
        residual=residual,
    )


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


def _step(place: Floats, jacobian: Floats, residual: Floats, weights: Floats) -> Floats:
    """Return the minimum of the linearised problem, with a weight for each residual."""
    normal = jacobian.T @ (jacobian * weights[:, None])
    return np.asarray(place - np.linalg.solve(normal, jacobian.T @ (residual * weights)))


def _published(
    problem: Problem,
    place: Floats,
    deviations: Floats,
    correlations: Mapping[tuple[ConstantName, ConstantName], float],
    source: str,
) -> EngineConstants:
    values = [float(value) for value in problem.values(place)]
    errors = [prior.error(*each) for prior, *each in zip(problem.priors, deviations, values, strict=True)]
    constants = {
        prior.name: Constant(
            value=float(f"{value:.4g}") if value > 1e-3 * error else 0.0,
            stderr=float(f"{error:.2g}"),
            bounds=(prior.low, prior.high),
        )
        for prior, value, error in zip(problem.priors, values, errors, strict=True)
    }
    rows: dict[ConstantName, dict[ConstantName, float]] = {}
    for (first, second), value in correlations.items():
        if abs(value) >= _WORTH_WRITING:
            rows.setdefault(first, {})[second] = round(value, 2)
    fit = Fit(source=source, rows=len(problem.points))
    return EngineConstants(overlapped=problem.overlapped, constants=constants, correlations=rows, fit=fit)


def _correlations(problem: Problem, covariance: Floats) -> dict[tuple[ConstantName, ConstantName], float]:
    scale = np.sqrt(np.diag(covariance))
    table = covariance / np.outer(scale, scale)
    names = [prior.name for prior in problem.priors]
    return {(names[i], names[j]): float(table[i, j]) for i in range(len(names)) for j in range(i)}


def _bootstrap(
    problem: Problem, place: Floats, jacobian: Floats, residual: Floats, draws: int = 200
) -> dict[str, tuple[float, float]]:
    random, owners, runs = np.random.default_rng(1), problem.owners(), len(problem.points)
    found = []
    for _ in range(draws):
        counts = np.bincount(random.integers(runs, size=runs), minlength=runs)
        weights = np.where(owners < 0, 1.0, counts[owners])
        found.append(problem.values(_step(place, jacobian, residual, weights)))
    low, high = np.percentile(found, [5, 95], axis=0)
    return {prior.name: (float(a), float(b)) for prior, a, b in zip(problem.priors, low, high, strict=True)}
