"""Draws the places for uploads."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from sim.errors import SimError
from sim.ui.state import State
from sim.ui.text import told
from sim.ui.uploads import Kind

__all__ = ["draw_uploads"]

_ACCEPTED: dict[Kind, tuple[str, str]] = {
    "model": ("Model (config.json)", "A Hugging Face `config.json`; rename it to tell several apart."),
    "trace": (
        "Trace (CSV or JSON Lines)",
        "Requests with `arrival_s`, `input_tokens` and `output_tokens`, or one of the published traces.",
    ),
    "loads": ("Loads of experts", "Layers by experts: JSON, CSV or NPY."),
}
_MOST_MB = 20


def draw_uploads(state: State, kinds: Iterable[Kind]) -> None:
    """Draw a place for each of *kinds*; what is uploaded is used at once."""
    for kind in kinds:
        label, about = _ACCEPTED[kind]
        key = f"upload {kind}"

        def keep(kind: Kind = kind, key: str = key) -> None:
            st.session_state[f"{key} problem"] = _keep(state, kind, key)

        st.file_uploader(label, key=key, help=about, on_change=keep, max_upload_size=_MOST_MB)
        if problem := st.session_state.get(f"{key} problem"):
            st.error(problem)


def _keep(state: State, kind: Kind, key: str) -> str | None:
    """Take an upload over and use it; return what is wrong with it, if anything is."""
    file = st.session_state[key]
    if file is None:
        return None
    try:
        name = state.uploads.add(file.name, file.getvalue(), kind).name
    except SimError as problem:
        return told(problem)
    if kind == "model":
        state.set("model", name)
    elif kind == "trace":
        state.set("workload.lengths", None)
        state.set("workload.arrivals", {"kind": "trace", "path": name})
    else:
        state.set("moe.popularity", {"kind": "measured", "path": name})
    return None
