"""The frame of the web page: which page it is, and a way to the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from sim.ui.pages import compare, cost, explore, moe, plan, report
from sim.ui.session import PAGE

__all__ = ["main"]

Draw = Callable[[], None]

_PAGES: dict[str, Draw] = {
    "Explore": explore.draw,
    "Compare": compare.draw,
    "Plan": plan.draw,
    "Cost": cost.draw,
    "Report": report.draw,
    "MoE": moe.draw,
}


def main(more: Mapping[str, Draw] | None = None) -> None:
    """Draw the page that the link or the visitor asks for; *more* pages come from outside of `sim`.

    Pages are told apart in the query of the URL, not by its path, so that one link restores all of a page.
    """
    st.set_page_config(page_title="servecast", layout="wide")
    pages = _PAGES | dict(more or {})
    if PAGE not in st.session_state:
        st.session_state[PAGE] = _asked_for(list(pages))
    title = st.segmented_control(
        "Page", list(pages), key=PAGE, required=True, label_visibility="collapsed", width="content"
    )
    pages[title or next(iter(pages))]()


def _asked_for(titles: Sequence[str]) -> str:
    asked = st.query_params.get(PAGE, "").casefold()
    return next((title for title in titles if title.casefold() == asked), titles[0])
