"""The highest load that a deployment keeps its SLO under."""

from __future__ import annotations

import streamlit as st

from sim.study.capacity import CapacityAnswer
from sim.ui.charts.plan import capacity_chart
from sim.ui.charts.style import CONFIG

__all__ = ["show"]


def show(answer: CapacityAnswer) -> None:
    """Draw the load, its interval, and the loads that were tested."""
    low, high = answer.interval
    unit = answer.load_words
    st.header(f"{answer.run.num_gpus} GPUs serve up to {answer.at_confidence:.3g} {unit}", anchor=False)
    st.markdown(
        f"With {answer.confidence:.0%} confidence; the model itself says {answer.capacity:.3g}, 90 % interval"
        f" {low:.3g} to {high:.3g}. **{answer.objective.replace('_', ' ')}** would be missed first."
    )
    st.plotly_chart(
        capacity_chart(answer, unit),
        config=CONFIG,
        key="capacity",
        alt="Margin to the objectives by load; see the table",
    )
    with st.expander(f"{len(answer.steps)} loads that were tested"):
        st.dataframe(answer.rows(), hide_index=True, alt="Loads that were tested")
