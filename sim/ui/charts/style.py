"""How all figures look: colours that everybody can tell apart, and little else on the page."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

__all__ = ["BLACK", "BLUE", "CONFIG", "GREEN", "GREY", "ORANGE", "PALETTE", "PURPLE", "SKY", "VERMILION", "styled"]

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, GREY, BLACK = "#E69F00", "#56B4E9", "#999999", "#444444"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY, BLACK)
"""Okabe and Ito (2008), "Color universal design": told apart with any colour vision. Yellow is left out for grey."""

CONFIG: dict[str, Any] = {"displaylogo": False, "displayModeBar": False, "responsive": True}
"""Options of every chart: its tool bar would cover the figures on a phone."""


def styled(figure: go.Figure, height: int, **layout: Any) -> go.Figure:
    """Return *figure* with narrow margins and a legend above it."""
    figure.update_layout(
        height=height,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "xanchor": "left"},
        colorway=PALETTE,
        hoverlabel={"namelength": -1},
        **layout,
    )
    figure.update_xaxes(automargin=True)
    figure.update_yaxes(automargin=True)
    return figure
