"""Report: the answer of Plan as one file to hand on."""

from __future__ import annotations

import streamlit as st

from sim.errors import UserError
from sim.experiment import Experiment
from sim.report.html import html_of
from sim.report.json import to_json
from sim.report.markdown import markdown_of
from sim.search.cheapest import Cheapest
from sim.ui import results
from sim.ui.example import PLAN_70B
from sim.ui.session import show_in_url, state_of, tell_link_problem
from sim.ui.text import dollars
from sim.ui.waiting import instead, refused, result_of

__all__ = ["draw"]


def draw() -> None:
    """Draw the page."""
    state = state_of("plan", PLAN_70B)
    experiment, error = state.checked()
    with st.sidebar:
        st.subheader("What it is about", anchor=False)
        st.caption("The report answers the question of the page Plan, where everything is set.")
        st.code(state.text, language="yaml", wrap_lines=True)
        st.button("Back to the worked example", on_click=state.reset, icon=":material/restart_alt:")
    tell_link_problem()
    if experiment is None:
        refused(error)
    elif not isinstance(experiment.search, Cheapest):
        st.error("A report needs the search of kind `cheapest`: choose it on the page Plan.")
    else:
        _answer(experiment)
    show_in_url(state)


def _answer(experiment: Experiment) -> None:
    try:
        job = instead("report", results.ask_report(experiment))
    except UserError as error:
        refused(error)
        return
    dossier = result_of(job, results.reports, "Searching, and running what the report shows")
    if dossier is None:
        return
    st.header("The report is ready", anchor=False)
    with st.container(horizontal=True):
        for label, name, mime, written in (
            ("HTML", "report.html", "text/html", html_of),
            ("Markdown", "report.md", "text/markdown", markdown_of),
            ("JSON", "report.json", "application/json", to_json),
        ):
            st.download_button(
                label,
                lambda written=written: written(dossier).encode(),  # type: ignore[misc]
                name,
                mime,
                icon=":material/download:",
                on_click="ignore",
            )
    st.caption("The HTML has its figures in it and asks nothing from elsewhere; it prints on four pages of A4.")
    with st.container(border=True, key="preview"):
        st.markdown(dollars(markdown_of(dossier)))
