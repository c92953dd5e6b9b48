"""Measured against predicted, residuals and correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from calibration.fitting.outcome import Outcome
from calibration.web.cases import Compared
from sim.ui.charts.style import GREY, PALETTE, styled

__all__ = ["correlation_heat", "fit_scatter", "prediction_scatter", "residual_chart"]

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x")


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
    return _scatter(points)


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
    for place, (label, found) in enumerate(sorted(points.items())):
        figure.add_scatter(
            x=[measured for measured, _, _ in found],
            y=[predicted for _, predicted, _ in found],
            mode="markers",
            name=label.removesuffix("_ms").replace("_ms,", ","),
            text=[name for _, _, name in found],
            marker={"color": PALETTE[place % len(PALETTE)], "symbol": _SYMBOLS[place % len(_SYMBOLS)], "size": 8},
            hovertemplate="%{text}<br>measured %{x:,.1f} ms, predicted %{y:,.1f} ms<extra></extra>",
        )
    styled(figure, 380, xaxis_title="measured [ms]", yaxis_title="predicted [ms]")
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    return figure


def residual_chart(outcome: Outcome) -> go.Figure:
    """Return the error of every run in per cent of what was measured, by latency; kept back ones as open marks."""
    figure = go.Figure()
    for place, metric in enumerate(outcome.metrics):
        rows = [row for row in outcome.rows if row.metric == metric]
        figure.add_scatter(
            x=[row.measured for row in rows],
            y=[row.error_pct for row in rows],
            mode="markers",
            name=metric.removesuffix("_ms"),
            text=[f"{row.name}{' (kept back)' if row.held_out else ''}" for row in rows],
            marker={
                "color": PALETTE[place % len(PALETTE)],
                "symbol": [f"{_SYMBOLS[place]}{'-open' if row.held_out else ''}" for row in rows],
                "size": 8,
            },
            hovertemplate="%{text}<br>%{x:,.1f} ms, off by %{y:+.1f} %<extra></extra>",
        )
    figure.add_hline(0, line={"color": GREY})
    styled(figure, 340, xaxis_title="measured [ms]", yaxis_title="error [%]")
    figure.update_xaxes(type="log")
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
