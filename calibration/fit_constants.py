"""The constants of an engine from serving runs: least squares on the logarithms of latencies, drawn to prior values.

The maximum of the posterior under normal priors and errors with heavy tails (``soft_l1``). Every point is simulated in
full, so that queueing, chunked prompts and lengths act as they do in a run. Kernel factors have narrow priors at 1:
fitted freely they help the model they were fitted on and harm others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from calibration.experiment_of_case import experiment_of_case
from calibration.memory_cases import NotModelledError
from calibration.serving_cases import ServingCase
from sim.errors import SimError
from sim.experiment import Experiment
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import ConstantName, EngineConstants
from sim.profiles.engine import EngineVersion
from sim.simulate import ReadyPool, Setup, play, prepare

__all__ = [
    "FACTORS_DEVIATION",
    "MOST_EVALUATIONS",
    "Fitted",
    "Measured",
    "Point",
    "Prior",
    "Problem",
    "fit_constants",
    "log_errors",
    "points_of",
    "priors_for",
]

Floats = NDArray[np.float64]
Latencies = dict[str, float]
"""Metric to value [ms]."""

METRICS = {
    "tpot_mean_ms": 0.05,
    "itl_mean_ms": 0.05,
    "ttft_mean_ms": 0.15,
    "ttft_p50_ms": 0.15,
    "e2e_mean_ms": 0.05,
}
"""Latencies that are fitted, and the error of each that is taken as noise of the measurement and of the model."""
_INSTEAD = {"itl_mean_ms": "tpot_mean_ms", "ttft_p50_ms": "ttft_mean_ms", "e2e_mean_ms": "tpot_mean_ms"}
"""Latencies that tell nothing new beside another one."""
_OPEN_LOOP_REQUESTS = 600
MOST_EVALUATIONS = 4
"""Of the residuals; a Jacobian is evaluated as often at most."""
_FACTORS: tuple[ConstantName, ...] = ("compute_factor", "memory_factor", "kernel_time_factor")
FACTORS_DEVIATION = 0.05
"""How far from 1 factors on an engine's own kernels are thought to be."""
_STEP = 0.1  # of the prior's standard deviation: smaller steps would differentiate the grain of scheduling
_WORTH_WRITING = 0.05
_TELLS = 0.7  # posterior over prior standard deviation above which the data say next to nothing


class Measured(Protocol):
    """A point of a fit: what was measured, and what constants predict for it."""

    @property
    def case(self) -> ServingCase:
        """The run that it is, or is of."""

    @property
    def setup(self) -> Setup:
        """The deployment with the engine profile's own constants."""

    @property
    def measured(self) -> dict[str, float]:
        """The latencies that are fitted [ms]."""

    def noise(self, metric: str) -> float:
        """Return the error of a latency that is taken as noise of the measurement and of the model."""

    def predicted(self, constants: EngineConstants) -> Latencies:
        """Return what *constants* give [ms]."""


class Prior(NamedTuple):
    """What is thought of a constant before the runs are seen: normal, and lognormal of factors.

    *deviation* is in units of the constant; of factors it is one of their logarithms.
    """

    name: ConstantName
    mean: float
    deviation: float
    low: float
    high: float

    def at(self, place: float) -> float:
        """Return the value that is *place* standard deviations from the mean."""
        if self.name in _FACTORS:
            return min(max(self.mean * math.exp(self.deviation * place), self.low), self.high)
        return min(max(self.mean + self.deviation * place, self.low), self.high)

    def place(self, value: float) -> float:
        """Return how many standard deviations *value* is from the mean."""
        if self.name in _FACTORS:
            return math.log(value / self.mean) / self.deviation
        return (value - self.mean) / self.deviation

    def error(self, deviations: float, value: float) -> float:
        """Return so many standard deviations about *value* in units of the constant."""
        return deviations * self.deviation * (value if self.name in _FACTORS else 1.0)


def priors_for(
    version: EngineVersion, factors_deviation: float = FACTORS_DEVIATION, host_s: float | None = None
) -> tuple[Prior, ...]:
    """Return the priors of every constant that is fitted: the values of the engine's profile, and 1 for factors.

    With *host_s*, an iteration takes the host about so long instead, and a prefill perhaps as long again.

    The compute rate may differ more than the memory rate: kernels timed one by one run at clocks that an accelerator
    full of prompts does not hold.
    """
    host, delay = version.host, version.request_delay
    iteration_s, least_s = (host.per_iteration_s, 1e-3) if host_s is None else (host_s, host_s)

    bounds = (0.5, 1.5) if factors_deviation <= FACTORS_DEVIATION else (0.02, 3.0)

    def near(name: ConstantName, value: float, floor: float, high: float) -> Prior:
        return Prior(name, value, max(value, floor), 0.0, high)

    return (
        near("host_per_iteration_s", iteration_s, 1e-3, 20e-3),
        near("host_per_sequence_s", host.per_sequence_s, 10e-6, 300e-6),
        near("host_per_prefill_s", host.per_prefill_s, least_s, 50e-3),
        near("delay_fixed_s", delay.fixed_s, 5e-3, 0.2),
        near("delay_per_prompt_token_s", delay.per_prompt_token_s, 2e-6, 50e-6),
        near("stream_lag_iterations", version.stream_lag_iterations, 2.0, 40.0),
        Prior("compute_factor", 1.0, 2 * factors_deviation, *bounds),
        Prior("memory_factor", 1.0, factors_deviation, *bounds),
        Prior("kernel_time_factor", 1.0, 3 * factors_deviation, 0.3, 3.0),
    )


@dataclass(frozen=True, slots=True)
class Point:
    """One run to be simulated with different constants."""

    case: ServingCase
    experiment: Experiment
    setup: Setup

    @property
    def measured(self) -> dict[str, float]:
        """The latencies that are fitted [ms]."""
        found = {metric: value for metric, value in self.case.measured.items() if metric in METRICS}
        return {metric: value for metric, value in found.items() if _INSTEAD.get(metric) not in found}

    def noise(self, metric: str) -> float:
        """Return the error of a latency that is taken as noise."""
        return METRICS[metric]

    def predicted(self, constants: EngineConstants) -> Latencies:
        """Return what the simulation gives with *constants*."""
        setup = self.setup.with_constants(self.experiment, constants)
        requests = play(self.experiment, [ReadyPool("", self.experiment, setup)]).requests
        done = requests.completed
        if not done.any():
            return {}
        ttft_s, tpot_s = requests.ttft_s[done], requests.tpot_s[done]
        found = {
            "ttft_mean_ms": 1e3 * float(ttft_s.mean()),
            "ttft_p50_ms": 1e3 * float(np.median(ttft_s)),
            "e2e_mean_ms": 1e3 * float(requests.e2e_s[done].mean()),
        }
        if np.isnan(tpot_s).all():  # answers of one token
            return found
        return found | dict.fromkeys(("tpot_mean_ms", "itl_mean_ms"), 1e3 * float(np.nanmean(tpot_s)))


def points_of(cases: Iterable[ServingCase]) -> tuple[list[Point], dict[str, str]]:
    """Return the cases that can be simulated, each question once, and the reason for each other one by name."""
    points, refused = [], {}
    for case in {case.question: case for case in cases}.values():
        try:
            experiment = experiment_of_case(case, _OPEN_LOOP_REQUESTS).experiment
            if experiment.pools:
                raise NotModelledError("constants are fitted to runs on equal replicas only")
            points.append(Point(case, experiment, prepare(_uncalibrated(experiment))))
        except (NotModelledError, SimError) as problem:
            refused[case.name] = str(problem)
    return points, refused


def _uncalibrated(experiment: Experiment) -> Experiment:
    """Return *experiment* on the engine profile's own constants."""
    engine = experiment.engine.model_copy(update={"calibration": "none"})
    copied = experiment.model_copy(update={"engine": engine})
    copied._document = experiment.document
    return copied


@dataclass(slots=True)
class Problem:
    """Residuals of *points* as a function of the constants, in units of their prior standard deviations."""

    points: Sequence[Measured]
    priors: Sequence[Prior]
    overlapped: bool | None = None
    on_simulated: Callable[[], None] = lambda: None
    """Called after each round of simulations; what it raises ends the fit."""

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

    def bounds(self) -> tuple[Floats, Floats]:
        """Return the lowest and highest place."""
        ends = [(prior.place(prior.low), prior.place(prior.high)) for prior in self.priors]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    def simulated(self, places: Sequence[Floats]) -> list[list[Latencies]]:
        """Return for each place the predicted latencies of every point."""
        found = _predicted([(point, at) for at in map(self.constants, places) for point in self.points])
        count = len(self.points)
        self.on_simulated()
        return [found[start : start + count] for start in range(0, len(found), count)]

    def residual(self, place: Floats) -> Floats:
        """Return the tamed log errors of all points at *place*, and *place* itself: the normal priors."""
        return self._residual(self.simulated([place])[0], place)

    def jacobian(self, place: Floats) -> Floats:
        """Return the forward differences of `residual`, inward where a bound is near.

        A request delay and a stream lag add to the time to the first token and change next to nothing else, so that
        they need no simulation of their own.
        """
        _, high = self.bounds()
        steps = np.diag(np.where(place + _STEP > high, -_STEP, _STEP))
        differenced = [index for index, prior in enumerate(self.priors) if prior.name not in _ADDED]
        base, *moved = self.simulated([place, *(place + steps[index] for index in differenced)])
        after = dict(zip(differenced, moved, strict=True))
        shift = self.values(place + steps.sum(axis=0)) - self.values(place)
        columns = []
        for index, prior in enumerate(self.priors):
            latencies = after[index] if index in after else self._shifted(base, prior.name, shift[index])
            column = self._residual(latencies, place + steps[index]) - self._residual(base, place)
            columns.append(column / steps[index, index])
        return np.stack(columns, axis=1)

    def _residual(self, latencies: Sequence[Latencies], place: Floats) -> Floats:
        errors = [_log_errors(point, found) for point, found in zip(self.points, latencies, strict=True)]
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


def _predicted(tasks: Sequence[tuple[Measured, EngineConstants]]) -> list[Latencies]:
    """Return what each point is predicted: runs are simulated on all cores, steps asked for here."""
    from joblib import Parallel, delayed

    runs = [place for place, (point, _) in enumerate(tasks) if isinstance(point, Point)]
    simulated = Parallel(n_jobs=-1, batch_size=4)(delayed(Point.predicted)(*tasks[place]) for place in runs)
    found: dict[int, Latencies] = dict(zip(runs, simulated, strict=True))
    return [
        found[place] if place in found else point.predicted(constants)
        for place, (point, constants) in enumerate(tasks)
    ]


def _log_errors(point: Measured, predicted: Latencies) -> Floats:
    return np.array(
        [np.log(predicted.get(metric, value) / value) / point.noise(metric) for metric, value in point.measured.items()]
    )


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
    if any(prior.name == "memory_factor" and prior.deviation > FACTORS_DEVIATION for prior in problem.priors):
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


def log_errors(
    points: Sequence[Measured], constants: EngineConstants
) -> Iterator[tuple[Measured, dict[str, float]]]:
    """Yield each point with ``ln(predicted / measured)`` of its latencies."""
    for point, predicted in zip(points, _predicted([(point, constants) for point in points]), strict=True):
        names, scaled = point.measured, _log_errors(point, predicted)
        yield point, {name: float(value * point.noise(name)) for name, value in zip(names, scaled, strict=True)}
