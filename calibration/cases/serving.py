"""Serving benchmarks as rows of a CSV file: what was run, and the latencies and rates that were measured."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.cases.columns import METRICS
from calibration.reading import rows_of
from calibration.suspicion import Flag
from sim.metrics.latency import Distribution
from sim.metrics.summary import Summary
from sim.units import LARGEST

__all__ = [
    "CLUES",
    "COLUMNS",
    "ServingCase",
    "described",
    "intervals",
    "predictions",
    "read_serving_cases",
]

COLUMNS = ("case_id", "engine", "gpu", "model", "input_len", "output_len", "load_type", "load_value")
"""Columns by which such a file is told from one of start-up logs."""

CLUES = ("engine", "gpu", "model", "weight_dtype", "mode", "quality")
"""Columns that a result repeats, so that it can be read without the file."""

_DISTRIBUTIONS = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}
_PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0}
_CHUNKED = 1.5
"""Times the TPOT above which an ITL must be one of chunks."""
_SAID_OF_A_ROW = frozenset({"case_id", "source", *METRICS})
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class ServingCase:
    """One benchmark run.

    Attributes
    ----------
    row
        The cells as they were written; an empty one is unknown.
    doubts
        What does not add up in them.
    folder
        Where their file lies.
    """

    row: Mapping[str, str]
    doubts: tuple[Flag, ...] = ()
    folder: Path | None = None

    @property
    def name(self) -> str:
        """Its identifier in the file."""
        return self.row["case_id"]

    def text(self, column: str) -> str:
        """Return a cell, empty where the file lacks the column."""
        return (self.row.get(column) or "").strip()

    def number(self, column: str) -> float | None:
        """Return a cell that is a number of this world, a load also ``inf``; None for any other."""
        try:
            value = float(self.text(column))
        except ValueError:
            return None
        return value if abs(value) < LARGEST or (value == math.inf and column == "load_value") else None

    def first_number(self, column: str) -> float | None:
        """Return the first number in a cell such as ``100 (10x10 repeating prompts)``."""
        match = _NUMBER.search(self.text(column))
        return float(match[0]) if match else None

    def whole(self, column: str) -> int | None:
        """Return a cell as a positive whole number; None for any other."""
        value = self.number(column)
        return round(value) if value is not None and 0 < value < math.inf else None

    def matches(self, where: Mapping[str, str]) -> bool:
        """Tell whether the cells equal *where*; a key of it that ends in ``~`` asks for one that contains the value."""
        return all(
            value in self.text(column.removesuffix("~")) if column.endswith("~") else value == self.text(column)
            for column, value in where.items()
        )

    @property
    def measured(self) -> dict[str, float]:
        """What was measured, by column; gaps between chunks of several tokens are none between tokens."""
        cells = {metric: self.number(metric) for metric in METRICS}
        found = {metric: value for metric, value in cells.items() if value is not None and 0 < value < math.inf}
        if found.get("itl_mean_ms", 0.0) > _CHUNKED * found.get("tpot_mean_ms", math.inf):
            return {metric: value for metric, value in found.items() if not metric.startswith("itl")}
        return found

    @property
    def question(self) -> tuple[tuple[str, str], ...]:
        """Everything that may change the prediction; rows with equal questions have equal answers."""
        return tuple(sorted((name, cell) for name, cell in self.row.items() if cell and name not in _SAID_OF_A_ROW))


def read_serving_cases(path: Path) -> Iterator[ServingCase]:
    """Yield the rows of *path*, which may be gzipped; raise a `TraceError` where it lacks one of the `COLUMNS`."""
    yield from (ServingCase(row, folder=path.parent) for _, row in rows_of(path, COLUMNS))


def predictions(summary: Summary) -> dict[str, float]:
    """Return a simulated run under the names of `METRICS`; times in milliseconds."""
    found: dict[str, float] = {
        "output_tok_s": summary.served.output_tok_s,
        "total_tok_s": summary.served.total_tok_s,
        "req_s": summary.served.requests_per_s,
    }
    for name, key in _DISTRIBUTIONS.items():
        found.update({f"{name}_{statistic}_ms": 1e3 * time_s for statistic, time_s in _times(summary.latency[key])})
    return {metric: value for metric, value in found.items() if math.isfinite(value)}


def _times(times: Distribution) -> Iterator[tuple[str, float]]:
    yield "mean", times.mean_s
    for statistic, percent in _PERCENTILES.items():
        yield statistic, times.percentile(percent)


_KEYS = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99"}
_RATES = {"output_tok_s": "output_throughput", "req_s": "request_throughput"}


def intervals(summary: Summary) -> dict[str, tuple[float, float]]:
    """Return the 90 % intervals of a simulated run under the names of `METRICS`."""
    keys = {
        f"{name}_{ours}_ms": f"{theirs}_{key}_ms"
        for name, key in _DISTRIBUTIONS.items()
        for ours, theirs in _KEYS.items()
    }
    known = summary.certainty.intervals
    return {metric: known[key] for metric, key in (keys | _RATES).items() if key in known}


def described(case: ServingCase) -> dict[str, Any]:
    """Return the clues that a result repeats."""
    return {column: case.text(column) for column in CLUES}
