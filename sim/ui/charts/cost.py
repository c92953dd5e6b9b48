"""A month's bill, and where an API becomes dearer."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from sim.study.money import Money
from sim.tco.bill import Bill
from sim.ui.charts.style import BROWN, GREY, PALETTE, styled

__all__ = ["bills_chart", "break_even_chart", "utilisation_chart"]

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def bills_chart(bills: tuple[Bill, ...]) -> go.Figure:
    """Return a month's bill of each scheme, item by item [$]."""
    items = list(dict.fromkeys(item for bill in bills for item in bill.items))
    schemes = [bill.scheme for bill in bills][::-1]
    figure = go.Figure()
    for place, item in enumerate(items):
        figure.add_bar(
            y=schemes,
            x=[bill.items.get(item, 0.0) for bill in reversed(bills)],
            name=item,
            orientation="h",
            marker={"color": PALETTE[place % len(PALETTE)], "pattern": {"shape": "/" if place >= len(PALETTE) else ""}},
            hovertemplate=f"%{{y}}, {item}: $%{{x:,.0f}}<extra></extra>",
        )
    return styled(figure, 190 + 50 * len(bills), barmode="stack", xaxis_title="$ a month")


def break_even_chart(money: Money) -> go.Figure:
    """Return what a month costs by its tokens: one's own, which is flat up to its capacity, and each API."""
    most = 1.1 * max(money.capacity_mtok, money.month.total_mtok)
    tokens = np.linspace(0, most, 60)
    figure = go.Figure()
    own = money.best
    figure.add_scatter(
        x=[0, money.capacity_mtok],
        y=[own.total_usd, own.total_usd],
        name=f"own ({own.scheme})",
        mode="lines",
        line={"color": BROWN, "width": 4},
        hovertemplate="own: $%{y:,.0f} a month<extra></extra>",
    )
    for place, api in enumerate(sorted(money.apis, key=lambda api: api.usd)):
        figure.add_scatter(
            x=tokens,
            y=api.usd / money.month.total_mtok * tokens,
            name=api.name,
            mode="lines",
            line={"color": PALETTE[place % len(PALETTE)], "dash": _DASHES[place % len(_DASHES)]},
            hovertemplate=f"{api.name}: $%{{y:,.0f}} for %{{x:,.0f}} M tokens<extra></extra>",
        )
    figure.add_vline(money.month.total_mtok, line={"color": GREY, "dash": "dot"}, annotation_text="this month")
    styled(figure, 420, xaxis_title="million tokens a month, prompts and answers", yaxis_title="$ a month")
    figure.update_yaxes(rangemode="tozero")
    return figure


def utilisation_chart(money: Money) -> go.Figure:
    """Return the cost of a million output tokens by how busy the deployment is."""
    points = sorted(money.at_utilization(), key=lambda point: point["utilization"])
    own = money.utilization
    figure = go.Figure()
    figure.add_bar(
        x=[f"{point['utilization']:.0%}{' (this one)' if point['utilization'] == own else ''}" for point in points],
        y=[point["usd_per_mtok_output"] for point in points],
        marker_color=[PALETTE[1] if point["utilization"] == own else PALETTE[0] for point in points],
        text=[f"${point['usd_per_mtok_output']:,.2f}" for point in points],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{x} of saturation: %{text}<extra></extra>",
    )
    styled(figure, 320, xaxis_title="share of what it could serve", yaxis_title="$ per million output tokens")
    figure.update_layout(margin_t=32)
    figure.update_xaxes(type="category")
    return figure
