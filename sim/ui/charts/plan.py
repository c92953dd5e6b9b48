"""What deployments cost and do, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from sim.study.alternative import Alternative
from sim.study.capacity import CapacityAnswer
from sim.study.pareto import FRONTS, ParetoPoint
from sim.study.sensitivity import Effect
from sim.ui.charts.style import BLUE, GREEN, GREY, PALETTE, VERMILION, styled

__all__ = ["capacity_chart", "cost_against_latency", "front_chart", "gpus_chart", "swing_chart", "unbeaten"]


def unbeaten(alternatives: Sequence[Alternative], objective: str) -> list[Alternative]:
    """Return those to which no other one is both cheaper and faster by *objective*, the cheapest first: Pareto's."""
    priced = [each for each in alternatives if each.usd_per_month is not None]
    priced.sort(key=lambda each: (each.usd_per_month or 0.0, each.peak.values_s[objective]))
    found: list[Alternative] = []
    for each in priced:
        if not found or each.peak.values_s[objective] < found[-1].peak.values_s[objective]:
            found.append(each)
    return found


def cost_against_latency(alternatives: Sequence[Alternative], objective: str, words: str) -> go.Figure:
    """Return the monthly rent of each alternative against its value of *objective*, which *words* name [ms]."""
    front = unbeaten(alternatives, objective)
    figure = go.Figure()
    figure.add_scatter(
        x=[each.usd_per_month for each in front],
        y=[1e3 * each.peak.values_s[objective] for each in front],
        mode="lines",
        name="no other is cheaper and faster",
        line={"color": GREY, "shape": "hv", "dash": "dot"},
        hoverinfo="skip",
    )
    for name, chosen, colour, symbol in (
        ("on the front", front, GREEN, "diamond"),
        ("beaten", [each for each in alternatives if each not in front], BLUE, "circle"),
    ):
        shown = [each for each in chosen if each.usd_per_month is not None]
        figure.add_scatter(
            x=[each.usd_per_month for each in shown],
            y=[1e3 * each.peak.values_s[objective] for each in shown],
            mode="markers+text",
            name=name,
            text=[each.gpu for each in shown],
            textposition="top center",
            marker={"color": colour, "symbol": symbol, "size": 11},
            customdata=[[each.label, each.gpus] for each in shown],
            hovertemplate="%{customdata[1]} x %{text} as %{customdata[0]}<br>$%{x:,.0f} a month, %{y:,.0f} ms"
            "<extra></extra>",
        )
    styled(figure, 380, xaxis_title="$ a month", yaxis_title=f"{words} [ms]")
    figure.update_xaxes(range=[0, 1.2 * max([each.usd_per_month or 0 for each in alternatives] or [1])])
    figure.update_yaxes(rangemode="tozero")
    return figure


def gpus_chart(alternatives: Sequence[Alternative]) -> go.Figure:
    """Return how many accelerators each alternative takes, with the 90 % interval."""
    names = [f"{each.gpu}<br>{each.label}" for each in alternatives][::-1]
    ordered = list(alternatives)[::-1]
    figure = go.Figure()
    figure.add_bar(
        y=names,
        x=[each.gpus for each in ordered],
        orientation="h",
        marker_color=BLUE,
        text=[each.gpus for each in ordered],
        textposition="inside",
        insidetextanchor="start",
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [max(0, (each.gpus_interval[1] or each.gpus) - each.gpus) for each in ordered],
            "arrayminus": [max(0, each.gpus - each.gpus_interval[0]) for each in ordered],
            "color": GREY,
        },
        hovertemplate="%{y}: %{x} accelerators<extra></extra>",
    )
    return styled(figure, 110 + 45 * len(names), xaxis_title="accelerators; bars: 90 % interval", showlegend=False)


def capacity_chart(answer: CapacityAnswer, unit: str) -> go.Figure:
    """Return the margin to the closest objective by load, for every load that was tested [%]."""
    figure = go.Figure()
    for met, name, colour, symbol in ((True, "kept", GREEN, "circle"), (False, "missed", VERMILION, "x")):
        steps = [step for step in answer.steps if step.met == met]
        figure.add_scatter(
            x=[step.load for step in steps],
            y=[100 * (1 - math.exp(-step.margin)) for step in steps],
            mode="markers",
            name=name,
            marker={"color": colour, "symbol": symbol, "size": 10},
            customdata=[step.objective for step in steps],
            hovertemplate=f"%{{x:.3g}} {unit}: %{{y:.0f}} % left, %{{customdata}}<extra></extra>",
        )
    figure.add_hline(0, line={"color": GREY})
    figure.add_vline(answer.at_confidence, line={"color": GREY, "dash": "dot"})
    styled(figure, 340, xaxis_title=unit, yaxis_title="room below the bound [%]")
    figure.update_yaxes(range=[-105, 105])
    return figure


def front_chart(points: Sequence[ParetoPoint], front: str) -> go.Figure:
    """Return the points in the coordinates of a *front*, with those that no other one beats joined."""
    across, up = FRONTS[front]
    known = [point for point in points if getattr(point, across) is not None and getattr(point, up) is not None]
    figure = go.Figure()
    for place, gpu in enumerate(dict.fromkeys(point.gpu for point in known)):
        mine = [point for point in known if point.gpu == gpu]
        figure.add_scatter(
            x=[getattr(point, across) for point in mine],
            y=[getattr(point, up) for point in mine],
            mode="markers",
            name=gpu,
            marker={
                "color": PALETTE[place % len(PALETTE)],
                "symbol": ["circle-open" if front in point.dominated else "circle" for point in mine],
                "size": [8 if front in point.dominated else 11 for point in mine],
            },
            text=[point.name for point in mine],
            hovertemplate=f"%{{text}}<br>{_axis(across)} %{{x:,.3g}}, {_axis(up)} %{{y:,.3g}}<extra></extra>",
        )
    best = sorted((getattr(point, across), getattr(point, up)) for point in known if front not in point.dominated)
    figure.add_scatter(
        x=[x for x, _ in best],
        y=[y for _, y in best],
        mode="lines",
        name="front",
        line={"color": GREY, "dash": "dot"},
        hoverinfo="skip",
    )
    styled(figure, 400, xaxis_title=_axis(across), yaxis_title=_axis(up))
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    return figure


def _axis(name: str) -> str:
    return {
        "tok_s_user": "tokens/s a user",
        "tok_s_gpu": "tokens/s a GPU",
        "usd_per_mtok": "$ per million output tokens",
        "ttft_ms": "time to first token [ms]",
        "energy_j_per_tok": "J per output token",
    }.get(name, name)


def swing_chart(effects: Sequence[Effect]) -> go.Figure:
    """Return what one output becomes at both ends of each range, the widest on top."""
    ordered = sorted(effects, key=lambda effect: abs(effect.swing))
    figure = go.Figure()
    for name, values, colour in (
        ("at the low end", [effect.at_low - effect.base for effect in ordered], BLUE),
        ("at the high end", [effect.at_high - effect.base for effect in ordered], VERMILION),
    ):
        figure.add_bar(
            y=[effect.path for effect in ordered],
            x=values,
            base=[effect.base for effect in ordered],
            name=name,
            orientation="h",
            marker_color=colour,
        )
    return styled(figure, 120 + 34 * len(ordered), barmode="overlay")
