"""Errors of many cases in few numbers, by group and metric."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from calibration.cases.overload import LASTING, confusion

__all__ = ["Errors", "error_statistics", "grouped", "summary_of_cases"]

_OVERLOADED = "overloaded"
_ALL_TOO = "all, overloaded ones too"
_GROUPED_BY = ("engine", "gpu", "model")

Errors = tuple[float, bool | None]
"""How far one prediction is off in per cent, and whether its interval holds what was measured, where it has one."""


def summary_of_cases(cases: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return ``{group: {metric: {n, mape, medape, bias, coverage}}}`` in per cent, and the skips by reason.

    Groups are ``all`` and each engine, accelerator, model and pair of engine and accelerator. The latencies of runs
    that were overloaded when they were measured tell how long those runs lasted: they are not among these, but in
    ``overloaded`` and in ``all, overloaded ones too``. ``overload`` counts how such runs, and those that kept up, are
    simulated.
    """
    cases = list(cases)
    summary = grouped(cases, _groups_of, _statistics)
    overload = confusion(cases)
    if _OVERLOADED not in summary:
        summary.pop(_ALL_TOO, None)
    return summary | ({"overload": overload} if overload else {})


def grouped(
    cases: Iterable[Mapping[str, Any]],
    groups_of: Callable[[Mapping[str, Any], str], Iterable[str]],
    statistics: Callable[[list[Errors]], dict[str, Any]],
) -> dict[str, Any]:
    """Return ``{group: {metric: statistics}}`` of the errors of *cases*, and ``skipped``: their number by reason.

    *groups_of* names the groups that a metric of a case belongs to.
    """
    groups: dict[str, dict[str, list[Errors]]] = defaultdict(lambda: defaultdict(list))
    skipped: Counter[str] = Counter()
    for case in cases:
        if case["skipped"] is not None:
            skipped[case["skipped"]] += 1
            continue
        for metric, error in case["error_pct"].items():
            for group in groups_of(case, metric):
                groups[group][metric].append((error, case["inside"].get(metric)))
    summary: dict[str, Any] = {
        group: {metric: statistics(found) for metric, found in metrics.items()} for group, metrics in groups.items()
    }
    return summary | {"skipped": {reason: {"n": count} for reason, count in skipped.most_common()}}


def _groups_of(case: Mapping[str, Any], metric: str) -> Iterator[str]:
    overloaded = case.get("overload", {}).get("measured")
    if not (overloaded and metric.startswith(LASTING)):
        yield "all"
        yield from _own_groups(case)
    yield _ALL_TOO
    if overloaded:
        yield _OVERLOADED


def _own_groups(case: Mapping[str, Any]) -> Iterator[str]:
    for column in _GROUPED_BY:
        yield f"{column} {case[column]}"
    yield f"{case['engine']} on {case['gpu']}"


def _statistics(found: list[Errors]) -> dict[str, Any]:
    inside = [held for _, held in found if held is not None]
    return {**error_statistics([error for error, _ in found]), "coverage": 100 * fmean(inside) if inside else None}


def error_statistics(errors: Sequence[float]) -> dict[str, float]:
    """Return count, mean and median of the absolute value, and the mean with its sign."""
    sizes = [abs(error) for error in errors]
    return {"n": len(errors), "mape": fmean(sizes), "medape": median(sizes), "bias": fmean(errors)}
