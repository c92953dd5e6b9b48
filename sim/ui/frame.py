"""What pages with one experiment have in common: a form beside, the answer in the middle, the file below."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from sim.experiment import Experiment
from sim.ui.exchange import draw_exchange
from sim.ui.form import Drawing, used_values
from sim.ui.session import show_in_url, state_of, tell_link_problem
from sim.ui.waiting import refused

__all__ = ["draw_framed"]


def draw_framed(
    page: str,
    worked_example: str,
    form: Callable[[Drawing], None],
    answer: Callable[[Experiment], None],
    command: str | None = None,
) -> None:
    """Draw the *form* of the experiment of *page*, and its *answer* or what is wrong with it.

    *command* of the command line gives the same figures; None: none does.
    """
    state = state_of(page, worked_example)
    experiment, error = state.checked()
    drawing = Drawing(state, used_values(experiment), error)
    with st.sidebar:
        form(drawing)
    tell_link_problem()
    if experiment is None:
        refused(drawing.error)
    else:
        answer(experiment)
    draw_exchange(state, command=command)
    show_in_url(state)
