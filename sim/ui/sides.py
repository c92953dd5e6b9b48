"""The experiments of the page Compare: that of Explore, and up to three that differ from it."""

from __future__ import annotations

import copy

import streamlit as st

from sim.errors import UserError
from sim.ui.example import CHAT_70B
from sim.ui.link import data_of, joined, parted, query_of
from sim.ui.session import SIDE, asked_query, state_of, uploads
from sim.ui.state import State
from sim.ui.text import told
from sim.yamlfile import parse_yaml

__all__ = ["MOST", "add", "base", "name_of", "others", "query", "remove"]

MOST = 3
_KEY = "sides"
_FIRST = {"deployment.gpu": "H200-SXM-141GB", "deployment.parallelism.tp": "2"}
"""What the first other one of a first visit differs in."""


def base() -> State:
    """Return the experiment that the others are compared with."""
    return state_of("explore", CHAT_70B)


def others() -> list[State]:
    """Return the others, in their order: at first those of the link, else a worked example."""
    if _KEY not in st.session_state:
        written = [text for key, text in sorted(asked_query().items()) if key.startswith(SIDE)]
        queries = [parted(text) for text in written[:MOST]] or [_FIRST]
        st.session_state[_KEY] = [side for place, each in enumerate(queries) for side in _made(each, place)]
    sides: list[State] = st.session_state[_KEY]
    return sides


def _made(settings: dict[str, str], place: int) -> list[State]:
    try:
        data = data_of(settings, parse_yaml(base().text, "link"))
    except UserError as problem:
        st.error(f"A part of the link could not be read. {told(problem)}")
        return []
    return [State(CHAT_70B, uploads(), data, name=f"side {place}")]


def add() -> None:
    """Add one that is as the last one is."""
    sides = others()
    last = sides[-1] if sides else base()
    number = st.session_state["sides made"] = st.session_state.get("sides made", MOST) + 1
    sides.append(State(CHAT_70B, uploads(), copy.deepcopy(last.data), name=f"side {number}"))


def remove(side: State) -> None:
    """Take *side* away."""
    others().remove(side)


def query() -> dict[str, str]:
    """Return what a link has to say of the others."""
    return {f"{SIDE}{place}": joined(query_of(side.data, base().data)) for place, side in enumerate(others(), 1)}


def name_of(side: State) -> str:
    """Return what *side* differs in, in a few words."""
    differences = query_of(side.data, base().data)
    words = [f"{path.rpartition('.')[2]} {text or 'open'}" for path, text in differences.items()]
    return ", ".join(words)[:60] or "the same"
