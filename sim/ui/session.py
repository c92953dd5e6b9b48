"""What one visitor has: uploads, and an experiment for each page that shows one."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from sim.errors import UserError
from sim.ui.state import State
from sim.ui.text import told
from sim.ui.uploads import Uploads

__all__ = [
    "PAGE",
    "SIDE",
    "asked_query",
    "go_to",
    "show_in_url",
    "state_of",
    "take_from",
    "tell_link_problem",
    "uploads",
]

PAGE = "page"
"""Key of the page's title, in the query of the URL and in the session."""
SIDE = "side"
"""Begin of the keys of further experiments, in the query of the URL."""
_PROBLEM = "problem of the link"


def uploads() -> Uploads:
    """Return the files of this session."""
    if "uploads" not in st.session_state:
        st.session_state["uploads"] = Uploads()
    kept: Uploads = st.session_state["uploads"]
    return kept


def state_of(page: str, worked_example: str) -> State:
    """Return the experiment of a *page*: at first that of the link, else the *worked_example*."""
    key = f"state of {page}"
    if key not in st.session_state:
        state = State(worked_example, uploads())
        _take_link(state)
        st.session_state[key] = state
    kept: State = st.session_state[key]
    return kept


def go_to(title: str) -> None:
    """Let the next run draw the page of that *title*; only to be called back by a widget."""
    st.session_state[PAGE] = title


def asked_query() -> dict[str, str]:
    """Return the query of the URL, if it is for the page that is drawn."""
    query = st.query_params.to_dict()
    asked = query.pop(PAGE, None)
    if asked is not None and asked.casefold() != str(st.session_state.get(PAGE)).casefold():
        return {}
    return query


def _take_link(state: State) -> None:
    """Read the query of the URL, once: from then on it follows the page."""
    query = {key: text for key, text in asked_query().items() if not key.startswith(SIDE)}
    try:
        if query:
            state.read_query(query)
    except UserError as problem:
        st.session_state[_PROBLEM] = told(problem)


def take_from(page: str, state: State) -> None:
    """Let *state* show the experiment of another *page*, if that was visited."""
    other: State | None = st.session_state.get(f"state of {page}")
    if other is not None:
        state.read_text(other.text)


def tell_link_problem() -> None:
    """Say what was wrong with the link, once."""
    if problem := st.session_state.pop(_PROBLEM, None):
        st.error(f"The link could not be read, so this is the worked example. {problem}")


def show_in_url(state: State | None = None, more: Mapping[str, str] | None = None) -> None:
    """Let the URL restore what the page shows: *state*, if it has one, and what *more* of it there is."""
    shown = {} if state is None else state.query
    query = {PAGE: str(st.session_state[PAGE]).casefold()} | shown | dict(more or {})
    if st.query_params.to_dict() != query:
        st.query_params.from_dict(query)
