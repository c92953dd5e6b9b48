"""How all figures look: colours that everybody can tell apart, and little else on the page."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

__all__ = ["BROWN", "BLUE", "CONFIG", "GREEN", "GREY", "ORANGE", "PALETTE", "PURPLE", "SKY", "VERMILION", "styled"]

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, GREY, BROWN = "#E69F00", "#56B4E9", "#999999", "#8C6D31"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY, BROWN)
"""Okabe and Ito (2008), "Color universal design": told apart with any colour vision. Yellow and black, which
hardly show on light or dark pages, are left out for grey and brown."""

CONFIG: dict[str, Any] = {"displaylogo": False, "displayModeBar": False, "responsive": True}
"""Options of every chart: its tool bar would cover the figures on a phone."""


def styled(figure: go.Figure, height: int, **layout: Any) -> go.Figure:
    """Return *figure* with narrow margins and a legend above it."""
    own = figure.layout.to_plotly_json()
    common = {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "xanchor": "left"},
        "hoverlabel": {"namelength": -1},
    }
    figure.layout = go.Layout(**(own | common | layout))  # many times as fast as to update it
    return figure
