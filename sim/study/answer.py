"""The answer of a search for the cheapest deployment."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sim.slo import SLO
from sim.study.alternative import Alternative, Dropped
from sim.study.load import Unit
from sim.study.measure import asked

__all__ = ["CheapestAnswer"]


@dataclass(frozen=True, slots=True)
class CheapestAnswer:
    """Which accelerator, how many, and what else was considered.

    Attributes
    ----------
    load, peak
        The mean load, and what the SLO holds for, in `load_unit`, or `load_words` for people.
    slo
        What is to be kept.
    alternatives
        The best deployment of each accelerator, the one to take first.
    unable
        Why accelerators without an alternative have none, by their names.
    dropped
        All others with their reasons.
    caution
        What to know about low precisions, where any was allowed.
    runs
        How many runs were asked for.
    """

    name: str
    model: str
    load_unit: Unit
    load_words: str
    load: float
    peak: float
    slo: SLO
    confidence: float
    alternatives: tuple[Alternative, ...]
    unable: Mapping[str, str]
    dropped: tuple[Dropped, ...]
    caution: str
    runs: int

    @property
    def best(self) -> Alternative:
        """The one to take."""
        return self.alternatives[0]

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as plain data, in a fixed order."""
        return {
            "kind": "cheapest",
            "name": self.name,
            "model": self.model,
            "load_unit": self.load_unit,
            "load_words": self.load_words,
            "load": self.load,
            "peak": self.peak,
            **asked(self.slo),
            "confidence": self.confidence,
            "recommended": self.best.as_dict(),
            "alternatives": [each.as_dict() for each in self.alternatives],
            "unable": dict(self.unable),
            "dropped": [_plain(each) for each in self.dropped],
            "dropped_by_stage": dict(Counter(each.stage for each in self.dropped)),
            "caution": self.caution or None,
            "runs": self.runs,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each deployment that was considered, the alternatives first."""
        return [*map(_row, self.alternatives), *map(_dropped_row, self.dropped)]


def _plain(dropped: Dropped) -> dict[str, Any]:
    plain = asdict(dropped)
    return plain | {"margin": dropped.margin if math.isfinite(dropped.margin) else None}


def _row(each: Alternative) -> dict[str, Any]:
    plain = each.as_dict()
    low, high = each.gpus_interval
    values = {f"{clause}_ms": value for clause, value in plain["peak"]["slo_values_ms"].items()}
    names = ("gpu", "label", "replicas", "gpus", "usd_per_month", "usd_per_mtok", "usd_per_mtok_at_peak", "kw")
    return {
        "stage": "alternative",
        **{name: plain[name] for name in names},
        "gpus_low": low,
        "gpus_high": high,
        **values,
        "binding_limit": each.peak.binding_limit,
        "reason": each.why,
    }


def _dropped_row(each: Dropped) -> dict[str, Any]:
    plain = _plain(each)
    return {name: plain[name] for name in ("stage", "gpu", "label", "margin", "reason")}
