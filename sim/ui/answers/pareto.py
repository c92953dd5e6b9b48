"""Fronts: what users get against what the owner pays."""

from __future__ import annotations

import streamlit as st

from sim.study.pareto import FRONTS, ParetoAnswer
from sim.ui.charts.plan import front_chart
from sim.ui.charts.style import CONFIG
from sim.ui.text import plainly

__all__ = ["show"]

_TITLES = {
    "speed": "Speed for a user against output of a GPU",
    "price": "Price against the first token",
    "energy": "Energy",
}


def show(answer: ParetoAnswer) -> None:
    """Draw a chart for each front, and the points as a table."""
    count = len({(point.gpu, point.label) for point in answer.points})
    st.header(
        f"{count} deployments at {len(answer.points) // max(1, count)} loads: which no other one beats", anchor=False
    )
    if answer.caution:
        st.warning(answer.caution, icon=":material/warning:")
    for front in FRONTS:
        st.markdown(f"**{_TITLES.get(front, front)}**")
        chart = front_chart(answer.points, front)
        st.plotly_chart(chart, config=CONFIG, key=f"front {front}", alt=f"{_TITLES.get(front, front)}; see the table")
    with st.expander("All points"):
        st.dataframe(answer.rows(), hide_index=True, alt="Every deployment at every load")
    for name, reason in answer.unable.items():
        st.caption(f"{plainly(name)} cannot be run: {plainly(reason)}.")
