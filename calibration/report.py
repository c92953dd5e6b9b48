"""What validation and fits found, for people: text, and a page with residuals."""

from __future__ import annotations

import html
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibration.assumptions import assumed_in_short
from calibration.cases.steps import METRIC

if TYPE_CHECKING:
    from calibration.fitting.outcome import Outcome

__all__ = ["fit", "fit_html", "taken", "validation"]

_MAIN = (
    "ttft_mean_ms",
    "tpot_mean_ms",
    "itl_mean_ms",
    "e2e_mean_ms",
    "output_tok_s",
    "total_tok_s",
    "req_s",
    "step_ms",
)
"""Metrics of the table; JSON has them all."""
_FEW = 5
_WORTH_SAYING = 0.05
_MEMORY = ("kv_gib", "kv_tokens", "weights_gib", "fits")


def validation(result: Mapping[str, Any]) -> str:
    """Return the accuracy table: mean / median of the absolute error, bias and cases, by group and metric.

    A group of the same cases as ``all`` is not repeated, and of a few cases each figure is shown.
    """
    summary = result["summary"]
    groups = _distinct({name: found for name, found in summary.items() if name not in ("skipped", "overload")})
    metrics = [name for name in (*_MAIN, *_MEMORY) if any(name in found for found in groups.values())]
    header = ["group", *metrics]
    rows = [[name, *(_cell(found.get(metric)) for metric in metrics)] for name, found in groups.items()]
    modelled = [case for case in result["cases"] if case["skipped"] is None]
    few = len(modelled) <= _FEW and all("doubts" in case for case in modelled)
    lines = [*_figures(modelled)] if few else []
    if rows and not (few and len(modelled) == 1):
        lines += ["error in %: mean / median of the absolute value, bias (cases)", "", *_aligned([header, *rows]), ""]
    if not few:
        lines += [*_assumed([case.get("assumed", ()) for case in modelled], "cases"), *_doubts(result["cases"])]
    if "overload" in summary:
        lines += [*_overload(summary["overload"]), ""]
    counts = {reason: found["n"] for reason, found in summary["skipped"].items()}
    lines += [*_reasons(counts, len(result["cases"]), "cases", "not modelled")]
    if "cpu_s" in result:
        lines += [f"{_whole_seconds(result['cpu_s'])} of processor time"]
    return "\n".join(lines).rstrip() + "\n"


def _assumed(assumed: Sequence[Sequence[str]], of: str) -> Iterator[str]:
    if said := assumed_in_short(assumed, of):
        yield f"assumed: {said}"
        yield ""


def _reasons(counts: Mapping[str, int], total: int, of: str, what: str) -> Iterator[str]:
    """Yield how many of a *total* are *what*, and each reason with how many there are."""
    if counts:
        number = sum(counts.values())
        yield f"{number} of {total} {of} {'is' if number == 1 else 'are'} {what}:"
        yield from (f"  {count:6} {reason}" for reason, count in counts.items())
        yield ""


def _distinct(groups: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found for name, found in groups.items() if name == "all" or found != groups.get("all")}


def _figures(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield measured beside predicted of each case, those that the table of errors has."""
    for case in cases:
        yield f"{case['case_id'].rpartition('/')[2]}: {case['model']} on {case['gpu']}, {case['engine']}"
        yield from ("{severity}: {check}: {text}".format(**doubt) for doubt in case.get("doubts", ()))
        if case["assumed"]:
            yield f"assumed: {'; '.join(dict.fromkeys(case['assumed']))}"
        rows = [["", "measured", "predicted", "90 % interval", "error"]]
        for metric in (name for name in _MAIN if name in case["error_pct"]):
            low_high = " - ".join(_digits(end) for end in case["interval"].get(metric, ()))
            values = (_digits(case[kind][metric]) for kind in ("measured", "predicted"))
            rows.append([metric, *values, low_high, f"{case['error_pct'][metric]:+.1f} %"])
        yield from (*_aligned(rows), "")


def _doubts(cases: Sequence[Mapping[str, Any]]) -> list[str]:
    return _counted(doubt["check"] for case in cases for doubt in case.get("doubts", ()))


def _counted(checks: Iterable[str]) -> list[str]:
    """Return how many runs there are in which something does not add up, by what it is."""
    counts = Counter(checks)
    if not counts:
        return []
    found = ", ".join(f"{check} {count}" for check, count in counts.most_common())
    return [f"runs with doubts (python -m calibration import says which): {found}", ""]


def _whole_seconds(value_s: float) -> str:
    return f"{value_s:.0f} s" if value_s >= 1 else "less than 1 s"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1e3 else f"{value:.4g}"


def _overload(counts: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Iterator[str]:
    """Yield how runs are simulated that were measured as overloaded, and those that kept up."""
    yield "open loops that were overloaded when measured, and that kept up: how many are simulated as what"
    yield "(TTFT and E2E of an overloaded run tell how long it lasted: they are in its own line, not in the others)"
    header = ["group", "overloaded:", "so", "keeps up", "unclear", "kept up:", "so", "overloaded", "unclear"]
    names = ("overloaded", "kept_up", "unclear"), ("kept_up", "overloaded", "unclear")
    rows = []
    for group, found in counts.items():
        halves = [[str(found[each[0]][name]) for name in each] for each in names]
        totals = [str(sum(found[each[0]].values())) for each in names]
        rows.append([group, totals[0], *halves[0], totals[1], *halves[1]])
    yield from _aligned([header, *rows])


def _cell(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    return f"{found['mape']:.1f} / {found['medape']:.1f}, {found['bias']:+.0f} ({found['n']})"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def fit(outcome: Outcome) -> str:
    """Return what was fitted to, constants, what is not known of them, and errors on runs fitted and kept back."""
    parts = (taken(outcome), _constants(outcome), _errors(outcome), _residuals(outcome))
    return "\n\n".join("\n".join(part).rstrip() for part in parts) + "\n"


def taken(outcome: Outcome) -> Iterator[str]:
    """Yield which runs were fitted and which not, and what was assumed of them."""
    steps, of = METRIC in outcome.metrics, outcome.taken
    what = " and ".join(["runs"] * (len(outcome.metrics) > steps) + ["steps"] * steps)
    yield f"{outcome.engine}: {len(outcome.used)} {what} fitted, {len(outcome.held_out)} kept back"
    if len(of.accelerators) > 1:
        names = ", ".join(f"{name} {count}" for name, count in of.accelerators.most_common())
        yield f"runs on several accelerators ({names}) share one set of constants: --where gpu=NAME fits one"
    if of.repeats:
        verb = "repeats" if of.repeats == 1 else "repeat"
        yield f"{of.repeats} more {verb} the load of another: the mean is fitted"
    if of.undrawn:
        yield f"{of.undrawn} more are left out: --most takes them"
    yield from _reasons(of.refused, of.given, what, "left out")
    yield from _assumed(of.assumed, what)
    yield from _counted(doubt.check for doubt in of.doubts)


def _constants(outcome: Outcome) -> Iterator[str]:
    fitted = outcome.fitted
    how = {True: "overlaps the GPU's", False: "adds to the GPU's", None: "as in the profile"}
    otherwise = f"; with a chance of {fitted.doubt:.0%} it does not" if fitted.doubt >= _WORTH_SAYING else ""
    yield f"host time {how[fitted.constants.overlapped]}{otherwise}"
    rows = [["constant", "value", "std. error", "90 % interval", "prior"]]
    for prior in outcome.priors:
        constant, (low, high) = fitted.constants.constants[prior.name], fitted.intervals[prior.name]
        unknown = "  (they do not tell)" if prior.name in fitted.unknown else ""
        cells = [f"{constant.value:.4g}", f"{constant.stderr:.2g}", f"{low:.4g} .. {high:.4g}"]
        rows.append([prior.name, *cells, f"{prior.mean:.4g} +- {prior.deviation:.2g}{unknown}"])
    yield from _aligned(rows)
    tied = [pair for pair, value in fitted.correlations.items() if abs(value) > 0.8]
    for first, second in tied:
        yield f"{first} and {second} cannot be told apart (correlation {fitted.correlations[first, second]:+.2f})"


def _errors(outcome: Outcome) -> Iterator[str]:
    yield "error in %: mean / median of the absolute value, bias (points)"
    groups = {
        "as shipped": outcome.before,
        "fitted": outcome.on_used,
        "kept back": outcome.on_held_out,
        "these, as shipped": outcome.before_on_held_out,
    }
    metrics = sorted({metric for found in groups.values() for metric in found})
    rows = [[name, *(_cell(found.get(metric)) for metric in metrics)] for name, found in groups.items()]
    yield from _aligned([["", *metrics], *rows])
    if outcome.is_worse:
        yield "runs that were kept back are met better as shipped: this fit is not to be used"


def _residuals(outcome: Outcome) -> Iterator[str]:
    yield "median error in % by concurrency or rate, prompt length and ranks"
    rows = [["", "points", *outcome.metrics]]
    rows += [[name, str(count), *cells] for name, count, cells in outcome.residual_rows()]
    yield from _aligned(rows)


def fit_html(outcome: Outcome) -> str:
    """Return the report as one page, with a plot of predicted against measured."""
    import plotly.graph_objects as go
    from plotly.io import to_html

    figure = go.Figure()
    for metric in outcome.metrics:
        rows = [row for row in outcome.rows if row.metric == metric]
        figure.add_scatter(
            x=[row.measured for row in rows],
            y=[row.predicted for row in rows],
            mode="markers",
            name=metric,
            text=[row.name for row in rows],
        )
    ends = [row.measured for row in outcome.rows]
    figure.add_scatter(x=[min(ends), max(ends)], y=[min(ends), max(ends)], mode="lines", name="equal")
    figure.update_layout(xaxis_type="log", yaxis_type="log", xaxis_title="measured [ms]", yaxis_title="predicted [ms]")
    page = io.StringIO()
    page.write("<!DOCTYPE html><meta charset='utf-8'><title>Fit</title>")
    page.write(f"<pre>{html.escape(fit(outcome))}</pre>")
    page.write(to_html(figure, include_plotlyjs=True, full_html=False, div_id="fit"))
    return page.getvalue()
