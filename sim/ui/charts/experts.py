"""Loads of experts and ranks, and what a placement is worth."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from sim.moe.expert_map import Floats
from sim.study.experts import EVEN, IN_ORDER, PLACED, ExpertStudy
from sim.ui.charts.style import BLUE, GREY, VERMILION, styled

__all__ = ["expert_heat", "rank_heat", "times_chart"]

_SCALE = "Cividis"  # reads the same with any colour vision, and in grey
_STYLES = {IN_ORDER: (VERMILION, "dash", "square"), PLACED: (BLUE, "solid", "circle"), EVEN: (GREY, "dot", "diamond")}


def expert_heat(study: ExpertStudy) -> go.Figure:
    """Return how popular each expert of each layer is, over the mean; the most popular of a layer first."""
    over = -np.sort(-study.shares, axis=1) * study.shares.shape[1]
    return _heat(over, "expert, most popular first", "times the mean", None)


def rank_heat(load: Floats, highest: float) -> go.Figure:
    """Return the load of each rank of each layer over the mean; colours reach up to *highest*."""
    return _heat(load, "rank", "times the mean", (2 - highest, highest))


def _heat(values: Floats, across: str, unit: str, limits: tuple[float, float] | None) -> go.Figure:
    low, high = limits or (0.0, float(values.max()))
    heat = go.Heatmap(
        z=values,
        colorscale=_SCALE,
        zmin=low,
        zmax=high,
        colorbar={"title": {"text": unit, "side": "right"}, "thickness": 12},
        hovertemplate=f"layer %{{y}}, {across} %{{x}}: %{{z:.2f}} {unit}<extra></extra>",
    )
    return styled(go.Figure(heat), 320, xaxis_title=across, yaxis_title="layer")


def times_chart(study: ExpertStudy) -> go.Figure:
    """Return the time of an iteration by the requests that decode on a rank, for each placement."""
    figure = go.Figure()
    for name, (colour, dash, symbol) in _STYLES.items():
        figure.add_scatter(
            x=study.decodes,
            y=1e3 * study.iteration_s[name],
            name=name,
            mode="lines+markers",
            line={"color": colour, "dash": dash},
            marker={"symbol": symbol, "size": 7},
            hovertemplate=f"{name}, %{{x}} requests: %{{y:.2f}} ms<extra></extra>",
        )
    styled(figure, 340, xaxis_title="requests that decode on a rank", yaxis_title="ms an iteration")
    figure.update_xaxes(type="log", dtick=float(np.log10(2)))
    figure.update_yaxes(rangemode="tozero")
    return figure
