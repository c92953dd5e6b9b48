"""Where the time of a mean iteration goes, side by side."""

from __future__ import annotations

import plotly.graph_objects as go

from sim.study.compare import Comparison
from sim.ui.charts.style import PALETTE, styled

__all__ = ["operations_chart"]


def operations_chart(comparison: Comparison) -> go.Figure:
    """Return the mean iteration of every side [ms], operation by operation, the first side on top."""
    sides = list(comparison.sides)[::-1]
    names = dict.fromkeys(name for side in sides for name in side.anatomy.operations_s)
    ordered = sorted(names, key=lambda name: -max(side.anatomy.operations_s.get(name, 0.0) for side in sides))
    figure = go.Figure()
    for place, name in enumerate(ordered):
        figure.add_bar(
            y=[side.name for side in sides],
            x=[1e3 * side.anatomy.operations_s.get(name, 0.0) for side in sides],
            name=name.replace("_", " "),
            orientation="h",
            marker={"color": PALETTE[place % len(PALETTE)], "pattern": {"shape": "/" if place >= len(PALETTE) else ""}},
            hovertemplate=f"{name.replace('_', ' ')}: %{{x:.3f}} ms<extra>%{{y}}</extra>",
        )
    styled(figure, 170 + 60 * len(sides), barmode="stack", xaxis_title="ms of a mean iteration")
    return figure
