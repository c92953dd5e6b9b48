"""What came of a fit: errors on runs that it saw and runs that it did not, and the profile to write."""

from __future__ import annotations

import io
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

from calibration.fitting.fitted import Fitted
from calibration.fitting.priors import Prior
from calibration.suspicion import Flag
from calibration.validation.summary import error_statistics
from sim.profiles.calibrated_engine import EngineConstants

__all__ = ["Outcome", "Row", "Taken", "profile_yaml"]

_PART = re.compile(r"\d+(?:\.\d+)?|\D+")


class Row(NamedTuple):
    """One latency of one run [ms]."""

    name: str
    metric: str
    measured: float
    predicted: float
    held_out: bool
    groups: tuple[str, ...]

    @property
    def error_pct(self) -> float:
        """How far the prediction is off, in per cent of the measured value."""
        return 100 * (self.predicted / self.measured - 1)


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of the runs that a fit was given.

    Attributes
    ----------
    given
        How many there were.
    assumed
        Of each point what had to be assumed.
    refused
        Why a run could not be taken, and how many there are of it.
    repeats
        Runs that repeat the load of another, whose mean is the point.
    undrawn
        Loads beyond the most that are fitted.
    doubts
        What does not add up in runs that were taken all the same.
    accelerators
        Those that they ran on, and how many there are of each.
    """

    given: int = 0
    assumed: Sequence[Sequence[str]] = ()
    refused: Counter[str] = field(default_factory=Counter)
    repeats: int = 0
    undrawn: int = 0
    doubts: Sequence[Flag] = ()
    accelerators: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A fit, and how well it meets runs that it saw and runs that it did not."""

    engine: str
    fitted: Fitted
    priors: tuple[Prior, ...]
    used: list[str]
    held_out: list[str]
    rows: list[Row]
    shipped: list[Row]
    taken: Taken = Taken()

    @property
    def metrics(self) -> list[str]:
        """The latencies that were fitted."""
        return sorted({row.metric for row in self.rows})

    @property
    def before(self) -> dict[str, dict[str, float]]:
        """Errors with the constants that come along."""
        return _statistics(self.shipped)

    @property
    def before_on_held_out(self) -> dict[str, dict[str, float]]:
        """Errors of these on the runs that were kept back."""
        return _statistics([row for row in self.shipped if row.held_out])

    @property
    def on_used(self) -> dict[str, dict[str, float]]:
        """Errors on the runs that were fitted."""
        return _statistics([row for row in self.rows if not row.held_out])

    @property
    def on_held_out(self) -> dict[str, dict[str, float]]:
        """Errors on the runs that were kept back."""
        return _statistics([row for row in self.rows if row.held_out])

    @property
    def is_worse(self) -> bool:
        """Whether runs that no fit saw come out worse by every metric than with the constants that come along."""
        pairs = [(found, self.before_on_held_out.get(metric)) for metric, found in self.on_held_out.items()]
        return bool(pairs) and all(before is not None and found["mape"] > before["mape"] for found, before in pairs)

    def residual_rows(self) -> Iterator[tuple[str, int, list[str]]]:
        """Yield group, runs and the median error of each metric."""
        groups: dict[str, list[Row]] = defaultdict(list)
        for row in self.rows:
            for group in row.groups:
                groups[group].append(row)
        for name in sorted(groups, key=_by_number):
            found = {metric: [row.error_pct for row in groups[name] if row.metric == metric] for metric in self.metrics}
            cells = [f"{median(errors):+.1f}" if errors else "" for errors in found.values()]
            yield name, len({row.name for row in groups[name]}), cells

    @property
    def published(self) -> EngineConstants:
        """The constants with their errors on the runs that were kept back."""
        errors = sorted(abs(row.error_pct) / 100 for row in self.rows if row.held_out)
        update = {}
        if errors:
            update = {"median_error": round(median(errors), 4), "p90_error": round(_quantile(errors, 0.9), 4)}
        return self.fitted.constants.model_copy(update={"fit": self.fitted.constants.fit.model_copy(update=update)})

    def as_yaml(self, name: str) -> str:
        """Return the calibrated profile *name* with this fit as its only entry."""
        return profile_yaml(name, [self.published], self.fitted.constants.fit.source, self.engine)


def _statistics(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    errors: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        errors[row.metric].append(row.error_pct)
    return {metric: error_statistics(found) for metric, found in errors.items()}


def _by_number(name: str) -> list[tuple[float, str]]:
    """Return what sorts ``concurrency 16`` before ``concurrency 128``."""
    return [(float(part), "") if part[0].isdigit() else (0.0, part) for part in _PART.findall(name)]


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, math.floor(share * len(ordered)))]


def profile_yaml(name: str, entries: Sequence[EngineConstants], source: str, engine: str | None = None) -> str:
    """Return the calibrated profile of an engine, by default the one called *name*, one line a constant."""
    from ruamel.yaml import YAML
    from ruamel.yaml.comments import CommentedMap

    yaml, stream = YAML(), io.StringIO()
    yaml.width = 120
    dumped: list[dict[str, Any]] = [each.model_dump(mode="json", exclude_defaults=True) for each in entries]
    for each in dumped:
        for constant, fields in each["constants"].items():
            each["constants"][constant] = CommentedMap(fields)
            each["constants"][constant].fa.set_flow_style()
        for constant, row in each.get("correlations", {}).items():
            each["correlations"][constant] = CommentedMap(row)
            each["correlations"][constant].fa.set_flow_style()
    of = {} if engine is None else {"engine": engine}
    yaml.dump({"name": name, "sources": {"all": source}, **of, "entries": dumped}, stream)
    return stream.getvalue()
