"""Figures of the report as plain data for plotly, in the colours of Okabe and Ito for colour-blind readers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["clause_words", "frontier", "load_curve", "memory_bars", "sensitivity_bars"]

Plain = Mapping[str, Any]

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#999999")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross")
_GREY = "#888888"


def load_curve(curve: Plain, bounds_ms: Mapping[str, float]) -> dict[str, Any]:
    """Draw the objectives against the load, with their bounds and the operating point."""
    points: Sequence[Plain] = curve["points"]
    loads = [point["load"] for point in points]
    traces: list[dict[str, Any]] = []
    for place, (name, bound) in enumerate(bounds_ms.items()):
        colour = _COLOURS[place]
        traces.append(_band(loads, [point["intervals_ms"][name] for point in points], colour))
        values = [point["values_ms"][name] for point in points]
        traces.append(_line(clause_words(name), loads, values, colour, _SYMBOLS[place]))
        bound_line = _line(f"{name} bound", [loads[0], loads[-1]], [bound, bound], colour, None)
        traces.append({**bound_line, "line": {"color": colour, "width": 1, "dash": "dash"}, "showlegend": False})
    layout = _layout(f"load [{curve['load_words']}]", "ms")
    layout["yaxis"]["type"] = "log"
    layout["shapes"] = [_upright(curve["peak"])]
    layout["annotations"] = [_note(curve["peak"], "planned peak")]
    return {"data": traces, "layout": layout}


def frontier(points: Sequence[Plain]) -> dict[str, Any]:
    """Draw throughput of a GPU against speed for a user, a line an accelerator."""
    traces = []
    for place, gpu in enumerate(dict.fromkeys(point["gpu"] for point in points)):
        own = [point for point in points if point["gpu"] == gpu]
        name = f"{gpu} {own[0]['label']}"
        x, y = ([point[key] for point in own] for key in ("tok_s_user", "tok_s_gpu"))
        line = _line(name, x, y, _COLOURS[place % len(_COLOURS)], _SYMBOLS[place % len(_SYMBOLS)])
        traces.append({**line, "text": [f"{p['in_flight']} in flight, limited by {p['binding_limit']}" for p in own]})
    layout = _layout("tok/s for a user", "tok/s of a GPU")
    layout["yaxis"]["type"] = "log"
    return {"data": traces, "layout": layout}


def memory_bars(bars: Sequence[Plain]) -> dict[str, Any]:
    """Draw how each deployment divides the memory of an accelerator."""
    names = [bar["gpu"] for bar in bars]
    parts = dict.fromkeys(part for bar in bars for part in bar["parts_bytes"])
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": part,
            "y": names,
            "x": [bar["parts_bytes"].get(part, 0.0) / 2**30 for bar in bars],
            "marker": {"color": _COLOURS[place] if part != "left free" else "#cccccc"},
        }
        for place, part in enumerate(parts)
    ]
    layout = _layout("GiB of one accelerator", "")
    layout |= {"barmode": "stack", "margin": {**layout["margin"], "t": 44}}
    layout["legend"] |= {"entrywidth": 84, "traceorder": "normal"}
    layout["yaxis"] |= {"autorange": "reversed", "automargin": True}
    return {"data": traces, "layout": layout}


def sensitivity_bars(rows: Sequence[Plain], name: str, bound_ms: float) -> dict[str, Any]:
    """Draw how one objective moves with each change, as shares of its bound."""
    what = [row["what"] for row in rows]
    traces = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": end,
            "y": what,
            "x": [row[f"{key}_ms"][name] / bound_ms for row in rows],
            "marker": {"color": _COLOURS[place], "symbol": _SYMBOLS[place], "size": 10},
        }
        for place, (end, key) in enumerate((("less", "low"), ("more", "high")))
    ]
    layout = _layout(f"{clause_words(name)} over its bound", "")
    layout["yaxis"] |= {"automargin": True, "autorange": "reversed"}
    layout["shapes"] = [_upright(1.0)]
    return {"data": traces, "layout": layout}


def clause_words(clause: str) -> str:
    """Return ``ttft_p95`` as people write it."""
    latency, _, percentile = clause.partition("_")
    return f"{'end to end' if latency == 'e2el' else latency.upper()} {percentile}"


def _line(name: str, x: Sequence[float], y: Sequence[float], colour: str, symbol: str | None) -> dict[str, Any]:
    marker = {"marker": {"symbol": symbol, "size": 7, "color": colour}} if symbol else {}
    mode = "lines+markers" if symbol else "lines"
    line = {"color": colour, "width": 2}
    return {"type": "scatter", "mode": mode, "name": name, "x": list(x), "y": list(y), "line": line, **marker}


def _band(x: Sequence[float], ends: Sequence[tuple[float, float]], colour: str) -> dict[str, Any]:
    """Fill what lies between the *ends*."""
    around = {"x": [*x, *reversed(x)], "y": [*(low for low, _ in ends), *(high for _, high in reversed(ends))]}
    look = {"fill": "toself", "fillcolor": _faint(colour), "line": {"width": 0}}
    return {"type": "scatter", "mode": "lines", "showlegend": False, "hoverinfo": "skip", **around, **look}


def _layout(x: str, y: str) -> dict[str, Any]:
    axis = {"gridcolor": "rgba(128,128,128,0.25)", "zeroline": False, "linecolor": _GREY, "ticks": "outside"}
    return {
        "width": 352,
        "height": 262,
        "margin": {"l": 52, "r": 8, "t": 8, "b": 40},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 10, "color": _GREY, "family": "system-ui, sans-serif"},
        "xaxis": {**axis, "title": {"text": x, "font": {"size": 10}}},
        "yaxis": {**axis, "title": {"text": y, "font": {"size": 10}}},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "font": {"size": 9}, "entrywidth": 0},
    }


def _upright(x: float) -> dict[str, Any]:
    line = {"color": _GREY, "width": 1.5, "dash": "dot"}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _note(x: float, text: str) -> dict[str, Any]:
    at = {"x": x, "y": 0.02, "yref": "paper", "xanchor": "left", "yanchor": "bottom"}
    return {**at, "text": text, "showarrow": False}


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
