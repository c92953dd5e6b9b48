"""Latency percentiles with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go

from sim.ui.charts.style import BLUE, GREEN, ORANGE, VERMILION, styled

__all__ = ["LATENCIES", "latency_chart"]

LATENCIES = {
    "ttft": "Time to first token",
    "tpot": "Time per output token",
    "itl": "Inter-token latency",
    "e2el": "End to end",
}
_STATISTICS = {
    "median": ("p50", BLUE, "circle"),
    "p90": ("p90", GREEN, "square"),
    "p95": ("p95", ORANGE, "diamond"),
    "p99": ("p99", VERMILION, "triangle-up"),
}


def latency_chart(values: Mapping[str, Any]) -> go.Figure:
    """Return the percentiles of a result's public *values* on one logarithmic axis [ms], with 90 % intervals."""
    figure = go.Figure()
    names = list(LATENCIES)[::-1]
    for place, (statistic, (label, colour, symbol)) in enumerate(_STATISTICS.items()):
        keys = [f"{statistic}_{name}_ms" for name in names]
        found = [values[key] for key in keys]
        bounds = [values["intervals"].get(key, (value, value)) for key, value in zip(keys, found, strict=True)]
        figure.add_scatter(
            x=found,
            y=[index + 0.27 - 0.18 * place for index in range(len(names))],
            mode="markers",
            name=label,
            marker={"color": colour, "symbol": symbol, "size": 9},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [high - value for (_, high), value in zip(bounds, found, strict=True)],
                "arrayminus": [value - low for (low, _), value in zip(bounds, found, strict=True)],
                "thickness": 1.5,
                "width": 3,
            },
            customdata=[[LATENCIES[name], *bound] for name, bound in zip(names, bounds, strict=True)],
            hovertemplate="%{customdata[0]} "
            + label
            + ": %{x:,.1f} ms<br>90 % interval %{customdata[1]:,.1f} to %{customdata[2]:,.1f} ms<extra></extra>",
        )
    styled(figure, 300, xaxis_title="ms, logarithmic; bars: 90 % interval", xaxis_type="log")
    ticks = [
        LATENCIES[name].replace(" ", "<br>", 1) if len(LATENCIES[name]) > 12 else LATENCIES[name] for name in names
    ]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=ticks)
    return figure
