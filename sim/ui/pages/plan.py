"""Plan: a load and objectives in, ranked deployments out."""

from __future__ import annotations

import streamlit as st

from sim.errors import UserError
from sim.experiment import Experiment
from sim.report.json import to_json
from sim.study.answer import CheapestAnswer
from sim.study.capacity import CapacityAnswer
from sim.study.pareto import ParetoAnswer
from sim.ui import results
from sim.ui.answers import capacity, cheapest, pareto, sensitivity
from sim.ui.control import at, form_of
from sim.ui.example import PLAN_70B
from sim.ui.form import Drawing
from sim.ui.frame import draw_framed
from sim.ui.objectives import draw_objectives
from sim.ui.uploading import draw_uploads
from sim.ui.waiting import instead, refused, result_of

__all__ = ["draw"]

_COMMON = {
    "What is served": ("model", "engine.kind", "engine.version", "engine.max_model_len"),
    "Load": ("workload.arrivals", "workload.lengths"),
}
_CHOICES = ("search.gpus", "search.tp", "search.precisions", "search.concurrency")


def draw() -> None:
    """Draw the page."""
    draw_framed("plan", PLAN_70B, _form, _answer, "search")


def _form(drawing: Drawing) -> None:
    nodes = list(form_of(Experiment))
    for heading, paths in _COMMON.items():
        st.subheader(heading, anchor=False)
        drawing.draw(at(nodes, paths))
    st.subheader("Objectives", anchor=False)
    draw_objectives(drawing)
    st.subheader("What is asked", anchor=False)
    fields = [field for node in at(nodes, ["search"]) for field in drawing.choose(node)]
    drawing.draw(at(fields, _CHOICES))
    drawing.drawer("More about the search", fields)
    drawing.drawer(
        "Prices, requests, engine flags", at(nodes, ("prices", "workload", "engine", "deployment.quantization"))
    )
    with st.expander("Upload a model"):
        draw_uploads(drawing.state, ("model",))
    st.button("Back to the worked example", on_click=drawing.state.reset, icon=":material/restart_alt:")


def _answer(experiment: Experiment) -> None:
    try:
        job = instead("plan", results.ask_search(experiment))
    except UserError as error:
        refused(error)
        return
    answer = result_of(job, results.searches, "Searching")
    if answer is None:
        return
    if isinstance(answer, CheapestAnswer):
        cheapest.show(experiment, answer)
    elif isinstance(answer, CapacityAnswer):
        capacity.show(answer)
    elif isinstance(answer, ParetoAnswer):
        pareto.show(answer)
    else:
        sensitivity.show(answer)
    st.download_button(
        "Answer (JSON)",
        to_json(answer.as_dict()) + "\n",
        "plan.json",
        "application/json",
        icon=":material/download:",
        on_click="ignore",
    )
