"""``python -m calibration fit``: the constants of one engine from somebody's runs, judged by runs kept back."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from calibration.cases.names import version_of
from calibration.cases.not_modelled import NotModelledError
from calibration.cases.of_files import check_filled, nothing_matches, serving_cases_of, steps_of
from calibration.cases.serving import ServingCase
from calibration.fitting.fitted import MOST_EVALUATIONS, fit_constants, likeliest
from calibration.fitting.outcome import Outcome, Row, Taken
from calibration.fitting.points import METRICS, Measured, log_errors, points_of
from calibration.fitting.priors import Prior, about, priors_for
from calibration.fitting.problem import Problem
from calibration.fitting.step_points import StepPoint, step_points
from calibration.runs import Steps
from sim.errors import SimError, UserError
from sim.profiles.calibrated import Fit
from sim.profiles.calibrated_engine import EngineConstants
from sim.profiles.folders import exists
from sim.profiles.library import load_calibrated_engine

__all__ = ["fit", "fit_cases", "fit_points"]

OnProgress = Callable[[int, int], None]
"""Takes the rounds of simulations that are done, and how many are usual; where there are more, it stays at these."""
_FEWEST = 3
"""Runs or steps below which nothing is fitted: with two there is none to spare for what one of them has alone."""
_NO_LATENCY = "no mean or median latency was measured, which a fit goes by"
_USUAL_SEARCHES = 2
_HELD_OUT = 5
"""One run in so many is kept back."""


def fit(files: Sequence[Path], where: Mapping[str, str], assumed: Mapping[str, str], most: int = 60) -> Outcome:
    """Fit the engine constants to at most *most* runs of *files*, and to all exact decodes of their step traces.

    Raises
    ------
    UserError
        As `fit_cases`.
    """
    cases = [case for path in files for case in serving_cases_of(path, None, where, assumed)]
    traces = [trace for path in files for trace in steps_of(path, where, assumed)]
    if where and not cases and not traces:
        raise nothing_matches(files, where, assumed)
    check_filled([*cases, *(case for case, _ in traces)], assumed)
    source = ", ".join(f"{path.name} (sha256 {_sha256(path)[:12]})" for path in files)
    return fit_cases(cases, source, most, traces)


def fit_cases(
    cases: Iterable[ServingCase],
    source: str,
    most: int,
    traces: Iterable[tuple[ServingCase, Steps]] = (),
    on_progress: OnProgress = lambda done, total: None,
) -> Outcome:
    """Fit the engine constants to at most *most* of *cases*, drawn evenly, and to all exact decodes of *traces*.

    Raises
    ------
    UserError
        No run that can be simulated (with the first reason), fewer than three, or runs of several engines.
    """
    if most < _FEWEST:
        raise UserError(f"a fit takes {_FEWEST} runs or more", file="--most")
    cases = list(cases)
    simulated, refused = points_of(case for case in cases if not METRICS.keys().isdisjoint(case.measured))
    refused |= {case.name: _NO_LATENCY for case in cases if METRICS.keys().isdisjoint(case.measured)}
    steps = list(_steps_of(traces, refused))
    if len(simulated) + len(steps) < _FEWEST:
        raise _too_few(len(simulated), refused)
    drawn = simulated[:: math.ceil(len(simulated) / most) or 1]
    points: list[Measured] = [*drawn, *steps]
    engines = sorted({version_of(point.case, [])[0] for point in points})
    if len(engines) > 1:
        raise UserError(f"runs of several engines ({', '.join(engines)}): fit one at a time (--where engine=NAME)")
    shipped = _shipped(engines[0], points)
    overlaps = (True, False) if shipped is None or shipped.overlapped is None else (shipped.overlapped,)
    outcome = fit_points(engines[0], points, source, overlaps, on_progress, shipped=shipped)
    taken = Taken(
        given=len(cases) + len(steps),
        assumed=[point.assumed for point in drawn] + [step.assumed for step in steps],
        refused=Counter(refused.values()),
        repeats=sum(point.runs - 1 for point in simulated),
        undrawn=len(simulated) - len(drawn),
        doubts=[doubt for point in points for doubt in point.case.doubts],
        accelerators=Counter(point.setup.hardware.name for point in points),
    )
    return replace(outcome, taken=taken)


def _shipped(engine: str, points: Sequence[Measured]) -> EngineConstants | None:
    """Return the constants that come along for the version and the accelerator of *points*; None where they differ."""
    if not exists("calibrated/engines", engine):
        return None
    found = load_calibrated_engine(engine)
    of = {version_of(point.case, [])[1]: point.setup.hardware for point in points}
    alike = len({point.setup.hardware.name for point in points}) == len(of) == 1
    return next((found.of(version, hardware) for version, hardware in of.items()), None) if alike else None


def _too_few(runs: int, refused: Mapping[str, str]) -> UserError:
    """Return the error of *runs* that are fewer than a fit needs, with the first reason why others were *refused*."""
    reason = next((f": {reason}" for reason in refused.values()), "")
    counted = "1 run" if runs == 1 else f"{runs} runs"
    return UserError(f"{counted} can be fitted, at least {_FEWEST} at different loads are needed{reason}")


def _steps_of(traces: Iterable[tuple[ServingCase, Steps]], refused: dict[str, str]) -> Iterator[StepPoint]:
    """Yield the steps of *traces*, and note why one is *refused*."""
    for case, steps in traces:
        try:
            yield from step_points(case, steps)
        except (NotModelledError, SimError) as problem:
            refused[case.name] = str(problem)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fit_points(
    engine: str,
    points: Sequence[Measured],
    source: str,
    overlaps: Sequence[bool] = (True, False),
    on_progress: OnProgress = lambda done, total: None,
    priors: tuple[Prior, ...] | None = None,
    most_evaluations: int = MOST_EVALUATIONS,
    shipped: EngineConstants | None = None,
    near: EngineConstants | None = None,
) -> Outcome:
    """Fit to four in five of *points*, with host time behind the GPU's and added to it; the better one counts.

    Without *priors*, those of the engine's version hold. Residuals are evaluated *most_evaluations* times at most in
    each search.
    """
    ordered = sorted(points, key=lambda point: hashlib.sha256(point.case.name.encode()).hexdigest())
    held_out = ordered[_HELD_OUT - 1 :: _HELD_OUT]
    used = [point for index, point in enumerate(ordered) if index % _HELD_OUT != _HELD_OUT - 1]
    shipped = shipped or EngineConstants(constants={}, fit=Fit(source="the engine's profile"))
    priors = priors or about(priors_for(used[0].setup.version), shipped)
    rounds, usual = itertools.count(1), _USUAL_SEARCHES * (most_evaluations + 1) * len(overlaps)

    def simulated() -> None:
        on_progress(min(next(rounds), usual), usual)

    problems = [Problem(used, priors, overlapped, simulated) for overlapped in overlaps]
    tried = [fit_constants(problem, source, most_evaluations, near) for problem in problems]
    fitted = likeliest(tried)
    return Outcome(
        engine,
        fitted,
        priors,
        [point.case.name for point in used],
        [point.case.name for point in held_out],
        [*_rows(used, fitted.constants, held_out=False), *_rows(held_out, fitted.constants, held_out=True)],
        [*_rows(used, shipped, held_out=False), *_rows(held_out, shipped, held_out=True)],
    )


def _rows(points: Sequence[Measured], constants: EngineConstants, *, held_out: bool) -> Iterator[Row]:
    for point, errors in log_errors(points, constants):
        for metric, error in errors.items():
            measured = point.measured[metric]
            predicted = measured * math.exp(error)
            yield Row(point.case.name, metric, measured, predicted, held_out, tuple(_groups(point.case)))


def _groups(case: ServingCase) -> Iterator[str]:
    yield f"{case.text('load_type')} {case.text('load_value')}"
    if prompt := case.number("input_len"):
        yield f"prompt of {float(f'{prompt:.2g}'):.0f}"  # of measured means hardly two are the same
    yield f"tp {case.text('tp') or case.text('n_gpus')}"
