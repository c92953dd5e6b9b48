"""Draws what has to hold: bounds on latencies and shares of the requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from sim.slo import SHARES
from sim.ui.form import Drawing
from sim.ui.values import si_number, step_of

__all__ = ["draw_objectives"]

_OBJECTIVES = ("ttft_p95", "tpot_p95", "e2e_p95")
_SHARES_MEAN = {
    "goodput": "Share of all requests that are within every bound; empty: no objective.",
    "availability": "Share of all requests that are answered in full; empty: no objective.",
}
_LATENCIES = {"ttft": "Time to first token", "tpot": "Time per output token", "itl": "Inter-token", "e2e": "End to end"}


def draw_objectives(drawing: Drawing) -> None:
    """Draw the SLO: bounds of the usual objectives and of those that are written [ms], and shares [%]."""
    written = drawing.state.value("slo") or {}
    drawing.drawn.add("slo")
    latencies = [name for name in dict.fromkeys((*_OBJECTIVES, *written)) if name not in SHARES]
    for name in latencies:
        metric, _, percent = name.partition("_p")
        label = f"{_LATENCIES.get(metric, metric)}, p{percent} [ms]"
        about = f"{percent} % of the requests are to be within it; empty: no objective."
        bound_s = si_number(written.get(name))
        shown = None if bound_s is None else float(f"{1e3 * bound_s:.12g}")
        _draw_objective(drawing, name, label, about, shown, None, lambda bound: f"{bound:g} ms")
    for name in SHARES:
        share = si_number(written.get(name))
        shown = None if share is None else float(f"{100 * share:.12g}")
        label = f"{name.capitalize()}, at least [%]"
        about = _SHARES_MEAN[name]
        _draw_objective(drawing, name, label, about, shown, 100.0, lambda percent: float(f"{percent / 100:.12g}"))
    drawing.complain("slo")


def _draw_objective(
    drawing: Drawing,
    name: str,
    label: str,
    about: str,
    value: float | None,
    high: float | None,
    written: Callable[[float], Any],
) -> None:
    """Draw one objective of the SLO, which *written* writes as the experiment has it."""
    state = drawing.state
    key = f"slo.{name}|{state.generation}|{state.name}"

    def write() -> None:
        chosen = st.session_state[key]
        state.set(f"slo.{name}", None if chosen is None else written(chosen))

    st.number_input(
        label,
        0.0,
        high if high is None or value is None or value <= high else None,
        value,
        step=step_of(value),
        format="%g",
        key=key,
        placeholder="no objective",
        help=about,
        on_change=write,
    )
    drawing.complain(f"slo.{name}")
