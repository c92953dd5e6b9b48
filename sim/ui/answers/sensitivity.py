"""What figures depend on."""

from __future__ import annotations

import streamlit as st

from sim.study.sensitivity import SensitivityAnswer
from sim.ui.charts.plan import swing_chart
from sim.ui.charts.style import CONFIG

__all__ = ["show"]


def show(answer: SensitivityAnswer) -> None:
    """Draw the swing of each output, and where the decision changes."""
    widest = max(answer.effects, key=lambda effect: abs(effect.swing))
    st.header(f"{widest.path} moves {widest.output} most: by {abs(widest.swing):.0%}", anchor=False)
    for output in dict.fromkeys(effect.output for effect in answer.effects):
        st.markdown(f"**{output.replace('_', ' ')}**")
        chart = swing_chart([effect for effect in answer.effects if effect.output == output])
        st.plotly_chart(chart, config=CONFIG, key=f"swing {output}", alt=f"Swing of {output} over each range")
    for switch in answer.switches:
        st.markdown(
            f"Beyond {switch.path} = {switch.value:.4g}, {switch.after} instead of {switch.before}: {switch.reason}."
        )
    with st.expander("All effects"):
        st.dataframe(answer.rows(), hide_index=True, alt="Outputs at both ends of each range")
