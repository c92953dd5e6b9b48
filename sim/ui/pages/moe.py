"""MoE: how popular experts are, where they live, and what that is worth."""

from __future__ import annotations

import streamlit as st

from sim.errors import UserError
from sim.experiment import Experiment
from sim.moe import balance
from sim.study.experts import IN_ORDER, PLACED, ExpertStudy, study_experts
from sim.study.key import Keys
from sim.ui.charts.experts import expert_heat, rank_heat, times_chart
from sim.ui.charts.style import CONFIG
from sim.ui.control import at, form_of
from sim.ui.example import MIXTURE
from sim.ui.form import Drawing
from sim.ui.frame import draw_framed
from sim.ui.results import Kept
from sim.ui.session import take_from
from sim.ui.text import plainly
from sim.ui.uploading import draw_uploads
from sim.ui.waiting import refused, result_of

__all__ = ["draw"]

_studies = Kept()
_COMMON = (
    "model",
    "deployment.gpu",
    "deployment.parallelism.tp",
    "deployment.parallelism.dp",
    "deployment.parallelism.ep",
    "deployment.quantization.weights",
)


def draw() -> None:
    """Draw the page."""
    draw_framed("moe", MIXTURE, _form, _answer)


def _form(drawing: Drawing) -> None:
    nodes = list(form_of(Experiment))
    st.subheader("Model and ranks", anchor=False)
    drawing.draw(at(nodes, _COMMON))
    st.subheader("Experts", anchor=False)
    drawing.draw(at(nodes, ["moe"]))
    drawing.drawer("Engine", at(nodes, ["engine"]))
    with st.expander("Upload a model or loads"):
        draw_uploads(drawing.state, ("model", "loads"))
    st.button(
        "Take the experiment of Explore",
        on_click=take_from,
        args=("explore", drawing.state),
        icon=":material/content_copy:",
    )
    st.button("Back to the worked example", on_click=drawing.state.reset, icon=":material/restart_alt:")


def _answer(experiment: Experiment) -> None:
    try:
        key = Keys().of(experiment)
    except UserError as error:
        refused(error)
        return
    study = result_of(_studies.ask(key, lambda _: study_experts(experiment)), _studies, "Placing the experts")
    if study is not None:
        _show(experiment, study)


def _show(experiment: Experiment, study: ExpertStudy) -> None:
    placed, before = study.rank_load[PLACED], study.rank_load[IN_ORDER]
    worst, worst_before = (float(balance.max_over_mean(load).mean()) for load in (placed, before))
    best = int(study.gain.argmax())
    layout = study.placed.layout
    st.header(f"The busiest of {layout.ranks} ranks does {worst:.2f} times the mean", anchor=False)
    st.markdown(
        f"{plainly(experiment.model)}: {layout.experts} experts in {layout.slots} slots. With experts in order and no"
        f" copies it would be {worst_before:.2f} times. **The placement makes an iteration up to {study.gain[best]:.1%}"
        f" faster**, at {study.decodes[best]} requests a rank; even loads would give {study.left[best]:.1%} more."
    )
    with st.container(horizontal=True):
        st.metric(
            "Busiest rank / mean", f"{worst:.3f}", border=True, width=165, help="Mean over layers, in the long run."
        )
        st.metric("In order, no copies", f"{worst_before:.3f}", border=True, width=165)
        st.metric("Redundant slots", f"{layout.slots - layout.experts}", border=True, width=165)
        st.metric("Gain at best", f"{study.gain[best]:.1%}", border=True, width=165)
    st.subheader("Time of an iteration", anchor=False)
    st.plotly_chart(
        times_chart(study),
        config=CONFIG,
        key="times",
        alt="Time of an iteration by requests a rank, for each placement",
    )
    st.caption("Every rank decodes as many requests, each with a context of 2,048 tokens.")
    st.subheader("Popularity of experts", anchor=False)
    top = float(balance.top_share(study.shares, max(1, layout.experts // 10)).mean())
    st.plotly_chart(expert_heat(study), config=CONFIG, key="experts", alt="Heat map: popularity by layer and expert")
    st.caption(f"The most popular tenth of the experts gets {top:.0%} of all choices.")
    st.subheader("Load of ranks", anchor=False)
    highest = float(max(placed.max(), before.max()))
    for column, name in zip(st.columns(2, gap="medium"), (IN_ORDER, PLACED), strict=True):
        with column:
            st.markdown(f"**{name}**")
            chart = rank_heat(study.rank_load[name], highest)
            st.plotly_chart(chart, config=CONFIG, key=f"ranks {name}", alt=f"Heat map: load by layer and rank, {name}")
