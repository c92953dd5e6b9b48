"""Measured against predicted, residuals and correlations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from calibration.fitting.outcome import Outcome
from calibration.web.cases import Compared
from sim.ui.charts.style import GREY, PALETTE, styled

__all__ = ["correlation_heat", "fit_scatter", "prediction_scatter", "residual_chart", "said_of"]

_METRICS = ("ttft", "tpot", "e2e", "itl")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")


def prediction_scatter(runs: Sequence[Compared], metrics: Sequence[str]) -> go.Figure:
    """Return what was predicted over what was measured for each of *metrics* [ms], one point a run."""
    points = {
        metric: [
            (run.measured[metric], run.predicted[metric], run.name)
            for run in runs
            if metric in run.measured and metric in run.predicted
        ]
        for metric in metrics
    }
    return _scatter({metric: found for metric, found in points.items() if found})


def fit_scatter(outcome: Outcome) -> go.Figure:
    """Return the same for a fit, with the runs that were kept back apart."""
    points: dict[str, list[tuple[float, float, str]]] = {}
    for row in outcome.rows:
        label = f"{row.metric}, kept back" if row.held_out else row.metric
        points.setdefault(label, []).append((row.measured, row.predicted, row.name))
    return _scatter(points)


def _scatter(points: Mapping[str, Sequence[tuple[float, float, str]]]) -> go.Figure:
    figure = go.Figure()
    ends = [value for found in points.values() for pair in found for value in pair[:2] if value > 0] or [1.0]
    figure.add_scatter(
        x=[min(ends), max(ends)], y=[min(ends), max(ends)], mode="lines", name="equal", line={"color": GREY}
    )
    for label, found in sorted(points.items()):
        metric, _, kept_back = label.partition(",")
        look = _look(metric, is_open=bool(kept_back))
        figure.add_scatter(
            x=[measured for measured, _, _ in found],
            y=[predicted for _, predicted, _ in found],
            mode="markers",
            name=said_of(metric) + (kept_back and f",{kept_back}"),
            text=[name for _, _, name in found],
            marker=look,
            hovertemplate="%{text}<br>measured %{x:,.1f} ms, predicted %{y:,.1f} ms<extra></extra>",
        )
    styled(figure, 380, xaxis_title="measured [ms]", yaxis_title="predicted [ms]")
    figure.update_xaxes(_logarithmic(ends))
    figure.update_yaxes(_logarithmic(ends))
    return figure


def said_of(metric: str) -> str:
    """Return what people call a metric, such as ``TTFT`` for ``ttft_mean_ms``."""
    name, _, statistic = metric.removesuffix("_ms").partition("_")
    return name.upper() if statistic == "mean" else f"{name.upper()} {statistic}" if statistic else name


def _look(metric: str, *, is_open: bool = False) -> dict[str, Any]:
    """Return the mark of a latency, the same in all charts; open ones are of runs that were kept back."""
    place = _METRICS.index(metric.partition("_")[0]) if metric.partition("_")[0] in _METRICS else len(_METRICS)
    return {"color": PALETTE[place], "symbol": f"{_SYMBOLS[place]}{'-open' if is_open else ''}", "size": 8}


def _logarithmic(values: Sequence[float]) -> dict[str, Any]:
    """Return an axis with powers of ten, or with what is between where there are not two of them."""
    few = math.log10(max(values) / min(values)) < 2
    return {"type": "log", "tickformat": ",", **({} if few else {"dtick": 1})}


def residual_chart(outcome: Outcome) -> go.Figure:
    """Return the error of every run in per cent of what was measured, by latency; kept back ones as open marks."""
    figure = go.Figure()
    for metric in outcome.metrics:
        rows = [row for row in outcome.rows if row.metric == metric]
        figure.add_scatter(
            x=[row.measured for row in rows],
            y=[row.error_pct for row in rows],
            mode="markers",
            name=said_of(metric),
            text=[f"{row.name}{' (kept back)' if row.held_out else ''}" for row in rows],
            marker=_look(metric) | {"symbol": [_look(metric, is_open=row.held_out)["symbol"] for row in rows]},
            hovertemplate="%{text}<br>%{x:,.1f} ms, off by %{y:+.1f} %<extra></extra>",
        )
    figure.add_hline(0, line={"color": GREY})
    styled(figure, 340, xaxis_title="measured [ms]", yaxis_title="error [%]")
    figure.update_xaxes(_logarithmic([row.measured for row in outcome.rows]))
    return figure


def correlation_heat(outcome: Outcome) -> go.Figure:
    """Return how far the runs cannot tell two constants apart: 1 and -1 not at all, 0 well."""
    names: list[str] = [prior.name for prior in outcome.priors]
    table = np.eye(len(names))
    for (first, second), value in outcome.fitted.correlations.items():
        i, j = names.index(first), names.index(second)
        table[i, j] = table[j, i] = value
    heat = go.Heatmap(
        z=table,
        x=names,
        y=names,
        zmin=-1,
        zmax=1,
        colorscale="RdBu",
        texttemplate="%{z:.2f}",
        hovertemplate="%{x} and %{y}: %{z:+.2f}<extra></extra>",
        showscale=False,
    )
    return styled(go.Figure(heat), 420)
