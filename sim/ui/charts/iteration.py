"""One iteration: where its time goes, and what bounds each operation."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from sim.cost.operation import OperationTime
from sim.simulate.moment import Moment
from sim.ui.charts.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, styled

__all__ = ["iteration_chart", "roofline_chart"]

_BOUND = {
    "arithmetic": VERMILION,
    "memory bandwidth": BLUE,
    "communication": GREEN,
    "launch and fixed times": ORANGE,
    "host": PURPLE,
    "not taken apart": GREY,
}


_NAMED = 4
"""Operations that bear their name, the longest; names of all would hide each other."""
_SIDES = ("top left", "bottom right", "middle right", "bottom left")


def iteration_chart(moment: Moment) -> go.Figure:
    """Return a bar for each operation [ms], in the colour of what bounds it, the longest on top."""
    ordered = sorted(moment.seconds.items(), key=lambda item: item[1])
    bounds = {name: _bound(name, moment.operations.get(name)) for name, _ in ordered}
    figure = go.Figure()
    for bound, colour in _BOUND.items():
        found = [(_words(name), 1e3 * seconds) for name, seconds in ordered if bounds[name] == bound]
        if found:
            figure.add_bar(
                y=[name for name, _ in found],
                x=[value for _, value in found],
                name=bound,
                orientation="h",
                marker_color=colour,
                text=[f"{value / moment.total_s / 10:.0f} %" for _, value in found],
                textposition="auto",
                hovertemplate="%{y}: %{x:.3f} ms, %{text}<extra></extra>",
            )
    styled(figure, 90 + 30 * len(ordered), xaxis_title="ms")
    figure.update_yaxes(categoryorder="array", categoryarray=[_words(name) for name, _ in ordered])
    return figure


def roofline_chart(moment: Moment) -> go.Figure:
    """Return the operations under one roof: how much arithmetic a byte gets, and what share of the peak is reached.

    Both axes are relative to the rates that the kernel of the operation reaches at best, so one roof holds for all:
    left of 1 the memory is the slower one, and a point below the roof loses time to launches and the rest.
    """
    shown = {name: times for name, times in moment.operations.items() if times.compute_s and times.memory_s}
    ratio = {name: times.compute_s / times.memory_s for name, times in shown.items()}
    reached = {name: times.compute_s / times.seconds for name, times in shown.items()}
    figure = go.Figure()
    low = min([0.01, *(0.2 * value for value in ratio.values())])
    high = max([10.0, *(2 * value for value in ratio.values())])
    roof = np.geomspace(low, high, 100)
    figure.add_scatter(
        x=roof,
        y=np.minimum(roof, 1),
        mode="lines",
        name="roof",
        line={"color": GREY},
        hoverinfo="skip",
        showlegend=False,
    )
    longest = max((times.seconds for times in shown.values()), default=1.0)
    ordered = sorted(shown.items(), key=lambda item: -item[1].seconds)
    for place, (name, times) in enumerate(ordered):
        figure.add_scatter(
            x=[ratio[name]],
            y=[reached[name]],
            mode="markers+text",
            name=_words(name),
            text=[_words(name) if place < _NAMED else ""],
            textposition=_SIDES[place % len(_SIDES)],
            marker={
                "color": _BOUND[_bound(name, times)],
                "size": 8 + 22 * (times.seconds / longest) ** 0.5,
                "opacity": 0.85,
            },
            hovertemplate=f"{_words(name)}: {times.seconds * 1e3:.3f} ms<br>%{{y:.1%}} of the best arithmetic rate"
            "<extra></extra>",
            showlegend=False,
        )
    styled(figure, 360, xaxis_title="arithmetic over memory time (1: balanced)", yaxis_title="share of arithmetic peak")
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log", tickformat=".1%")
    return figure


def _bound(name: str, times: OperationTime | None) -> str:
    if times is None:
        return "host" if name == "host" else "not taken apart"
    parts = {
        "arithmetic": times.compute_s,
        "memory bandwidth": times.memory_s,
        "communication": times.link_s,
        "launch and fixed times": times.fixed_s,
    }
    return max(parts, key=lambda part: parts[part])


def _words(name: str) -> str:
    return {"attention_gemm": "attention projections", "mlp_gemm": "MLP"}.get(name, name.replace("_", " "))
