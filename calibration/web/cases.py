"""From uploaded benchmark files to runs that can be simulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from calibration.cases.of_files import serving_cases_of
from calibration.cases.of_run import with_assumptions
from calibration.cases.serving import ServingCase
from calibration.fitting import fit
from calibration.fitting.outcome import Outcome
from calibration.importers import import_file
from calibration.suspicion import suspicions
from calibration.table import FlaggedRun
from calibration.validation.serving import predict
from calibration.validation.validate import SHIPPED
from sim.errors import SimError
from sim.ui.jobs import OnProgress
from sim.ui.uploads import is_profile_name, plain

__all__ = ["ASSUMED", "Compared", "Imported", "compare_cases", "fit_cases", "imported", "shipped_example"]

ASSUMED = ("gpu", "model", "tp", "engine", "engine_version")
"""Columns that benchmark tools tend to leave out."""
_NAMES = ("gpu", "model", "engine")
_MOST_RUNS = 60
_EXAMPLE = "vllm_sharegpt_h100_pcie_rtx4090.csv"
_EXAMPLE_RUNS = 20


@dataclass(slots=True)
class Imported:
    """What uploads hold.

    Attributes
    ----------
    runs
        Every run with what does not add up in it.
    cases
        The same as rows to simulate, without step traces.
    problems
        What could not be read, a line a file.
    """

    runs: list[FlaggedRun] = field(default_factory=list)
    cases: list[ServingCase] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def imported(files: Iterable[Path], assumed: Mapping[str, str]) -> Imported:
    """Read *files*, and fill cells that are empty from *assumed*."""
    found = Imported()
    for path in files:
        try:
            runs = import_file(path)
        except SimError as problem:
            found.problems.append(plain(problem).partition("; known: ")[0])
            continue
        found.runs += [(run, suspicions(run)) for run in runs]
        found.cases += with_assumptions(map(_guarded, serving_cases_of(path, None, {}, {})), assumed)
    return found


def _guarded(case: ServingCase) -> ServingCase:
    """Return *case*; a model that is a path on somebody's machine counts as unknown, and is never opened."""
    named = {name: cell for name, cell in case.row.items() if name not in _NAMES or is_profile_name(cell)}
    return replace(case, row={**named, "case_id": Path(case.name).name})


def shipped_example() -> list[ServingCase]:
    """Return measurements that come along: vLLM on an H100 by PCIe, ShareGPT prompts at several rates."""
    return list(serving_cases_of(SHIPPED / _EXAMPLE, _EXAMPLE_RUNS, {"gpu": "H100-PCIe-80GB"}, {}))


class Compared(NamedTuple):
    """One run: what was measured and what is predicted, by metric, or why it is not; and what was assumed of it."""

    name: str
    measured: Mapping[str, float]
    predicted: Mapping[str, float]
    skipped: str | None
    assumed: Sequence[str] = ()

    def error_pct(self, metric: str) -> float | None:
        """Return how far the prediction is off, in per cent of the measured value; None where one of them lacks."""
        if metric not in self.measured or metric not in self.predicted:
            return None
        return 100 * (self.predicted[metric] / self.measured[metric] - 1)


def compare_cases(cases: Sequence[ServingCase], on_progress: OnProgress) -> list[Compared]:
    """Predict *cases* one after the other."""
    found = []
    for place, case in enumerate(cases):
        on_progress(place, len(cases))
        answer = predict(case)
        parts = (answer["predicted"], answer["skipped"], answer["assumed"])
        found.append(Compared(case.name, case.measured, *parts))
    return found


def fit_cases(cases: Iterable[ServingCase], source: str, on_progress: OnProgress) -> Outcome:
    """Fit as the command does by itself, to at most 60 of *cases*; raise a `UserError` where they cannot tell."""
    return fit.fit_cases(cases, source, _MOST_RUNS, on_progress=on_progress)
