"""The cheapest deployment for a load, and what else was considered."""

from __future__ import annotations

import streamlit as st

from sim.experiment import Experiment
from sim.study.alternative import Alternative
from sim.study.answer import CheapestAnswer
from sim.study.laboratory import altered
from sim.ui.charts.plan import cost_against_latency, gpus_chart
from sim.ui.charts.style import CONFIG
from sim.ui.example import CHAT_70B
from sim.ui.session import go_to, state_of
from sim.ui.text import dollars

__all__ = ["show"]


def show(experiment: Experiment, answer: CheapestAnswer) -> None:
    """Draw the recommendation, the alternatives with their reasons, and what was dropped."""
    best = answer.best
    price = "" if best.usd_per_month is None else dollars(f", ${best.usd_per_month:,.0f} a month")
    st.header(f"Take {best.gpus} x {best.gpu}{price}", anchor=False)
    low, high = best.gpus_interval
    st.markdown(
        f"As {best.replicas} replica{'s' if best.replicas > 1 else ''} of {best.label}; the 90 % interval is {low} to "
        f"{'beyond what was considered' if high is None else high} accelerators. Holds {answer.peak:,.4g} "
        f"{answer.load_words} with {answer.confidence:.0%} confidence. {dollars(best.why).capitalize()}."
    )
    if answer.caution:
        st.warning(f"{answer.caution}", icon=":material/warning:")
    st.button("Show it in Explore", icon=":material/tune:", on_click=_to_explore, args=(experiment, best))
    _table(answer)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Accelerators**")
        st.plotly_chart(gpus_chart(answer.alternatives), config=CONFIG, key="gpus", alt="Accelerators by alternative")
    with right:
        st.markdown("**Rent against latency**")
        names = [clause.name for clause in answer.slo.clauses]
        objective = st.selectbox("Objective", names, key="objective", label_visibility="collapsed")
        if objective is not None:
            chart = cost_against_latency(answer.alternatives, objective, objective.replace("_", " "))
            st.plotly_chart(chart, config=CONFIG, key="pareto", alt="Monthly rent against latency; see the table")
    _others(answer)


def _table(answer: CheapestAnswer) -> None:
    rows, clauses = answer.alternatives, [clause.name for clause in answer.slo.clauses]
    st.dataframe(
        {
            "GPU": [each.gpu for each in rows],
            "as": [f"{each.replicas} x {each.label}" for each in rows],
            "GPUs": [each.gpus for each in rows],
            "90 % interval": [f"{each.gpus_interval[0]} to {each.gpus_interval[1] or 'more'}" for each in rows],
            "$ a month": [each.usd_per_month for each in rows],
            "$ per M output tokens": [each.usd_per_mtok for each in rows],
            "kW": [each.kw for each in rows],
            **{f"{name} [ms]": [1e3 * each.peak.values_s[name] for each in rows] for name in clauses},
            "limited by": [each.peak.binding_limit for each in rows],
        },
        hide_index=True,
        column_config={
            "$ a month": st.column_config.NumberColumn(format="%,.0f"),
            "$ per M output tokens": st.column_config.NumberColumn(format="%.2f"),
            "kW": st.column_config.NumberColumn(format="%.1f"),
            **{f"{name} [ms]": st.column_config.NumberColumn(format="%.0f") for name in clauses},
        },
        alt="The best deployment of each accelerator, the one to take first",
    )
    st.markdown("\n".join(f"- **{each.gpu}**: {dollars(each.why)}." for each in rows))


def _others(answer: CheapestAnswer) -> None:
    for gpu, reason in answer.unable.items():
        st.markdown(f"**{gpu}** cannot: {dollars(reason)}.")
    with st.expander(f"{len(answer.dropped)} others that were considered, and why not"):
        st.dataframe(
            {
                "GPU": [each.gpu for each in answer.dropped],
                "as": [each.label for each in answer.dropped],
                "why not": [each.reason for each in answer.dropped],
            },
            hide_index=True,
            column_config={"why not": st.column_config.TextColumn(width=800)},
            alt="Deployments that were considered and dropped, with reasons",
        )


def _to_explore(experiment: Experiment, best: Alternative) -> None:
    """Let Explore show the deployment, and go there."""
    settings = {**best.settings, "deployment.replicas": best.replicas}
    state_of("explore", CHAT_70B).take(altered(experiment, settings).document)
    go_to("Explore")
