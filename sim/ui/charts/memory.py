"""What fills a card."""

from __future__ import annotations

import plotly.graph_objects as go

from sim.memory import MemoryPlan
from sim.report.size_table import parts_of
from sim.ui.charts.style import BLUE, BROWN, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, styled
from sim.units import GIB, format_bytes

__all__ = ["memory_bar", "memory_words"]

_COLOURS = {
    "weights": BLUE,
    "activation peak": PURPLE,
    "outside the framework": ORANGE,
    "CUDA graphs": SKY,
    "states": BROWN,
    "KV cache": GREEN,
    "free": GREY,
    "lacking": VERMILION,
}


def memory_bar(plan: MemoryPlan) -> go.Figure:
    """Return one bar: the memory of the first card, part by part [GiB]."""
    figure = go.Figure()
    for name, size in _parts(plan).items():
        text = f"{name}<br>{size / GIB:.1f}" if size > 0.08 * plan.ranks[0].visible_bytes else ""
        figure.add_bar(
            x=[size / GIB],
            y=[""],
            name=name,
            orientation="h",
            marker={"color": _COLOURS[name], "line": {"width": 0}},
            text=text,
            textposition="inside",
            insidetextanchor="middle",
            hovertemplate=f"{name}: %{{x:.2f}} GiB<extra></extra>",
        )
    styled(figure, 200, barmode="stack", xaxis_title="GiB of one card")
    figure.update_layout(legend_traceorder="normal")
    figure.add_vline(plan.ranks[0].visible_bytes / GIB, line={"dash": "dot", "color": GREY})
    return figure


def memory_words(plan: MemoryPlan) -> str:
    """Return the same in words."""
    return ", ".join(f"{name} {format_bytes(size)}" for name, size in _parts(plan).items())


def _parts(plan: MemoryPlan) -> dict[str, float]:
    parts = {name: size for name, size in parts_of(plan).items() if size}
    if (free := parts.get("free", 0.0)) < 0:
        del parts["free"]
        parts["lacking"] = -free
    return parts
