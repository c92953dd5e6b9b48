"""Queue, batch, KV cache and output over time."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from sim.metrics.timeline import Timeline
from sim.ui.charts.style import BLUE, GREEN, PURPLE, VERMILION, styled

__all__ = ["timeline_chart"]

_POINTS = 250


def timeline_chart(timeline: Timeline) -> go.Figure:
    """Return all replicas of a run together: requests waiting and running, KV cache in use, tokens a second."""
    replicas = max(1, len(np.unique(timeline.replica)))
    shape = (replicas, -1)
    time_s = timeline.time_s.reshape(shape)[0]
    thin = max(1, len(time_s) // _POINTS)

    def total(series: NDArray[np.float64]) -> NDArray[np.float64]:
        summed: NDArray[np.float64] = np.nan_to_num(series.reshape(shape)).sum(axis=0)
        even = len(summed) // thin * thin
        means: NDArray[np.float64] = summed[:even].reshape(-1, thin).mean(axis=1)
        return means

    figure = make_subplots(rows=3, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    rows = (
        (1, "waiting", total(timeline.waiting), VERMILION, "%{y:,.1f} wait"),
        (1, "running", total(timeline.running), BLUE, "%{y:,.1f} run"),
        (2, "KV cache in use", 100 * total(timeline.kv_utilization) / replicas, GREEN, "%{y:.1f} % of the KV cache"),
        (3, "output", total(timeline.output_tok_s), PURPLE, "%{y:,.0f} tokens/s"),
    )
    for row, name, series, colour, hover in rows:
        figure.add_scatter(
            x=time_s[: len(series) * thin : thin],
            y=series,
            name=name,
            mode="lines",
            line={"color": colour, "width": 1.5, "dash": "dot" if name == "waiting" else "solid"},
            hovertemplate=f"{hover}<extra></extra>",
            row=row,
            col=1,
        )
    styled(figure, 420, hovermode="x unified")
    for row, title in enumerate(("requests", "KV [%]", "tokens/s"), 1):
        figure.update_yaxes(title_text=title, rangemode="tozero", row=row, col=1)
    figure.update_xaxes(title_text="time [s]", row=3, col=1)
    return figure
