"""The form of an experiment: what most visitors change first, and all else in drawers."""

from __future__ import annotations

import streamlit as st

from sim.errors import UserError
from sim.experiment import Experiment
from sim.ui.control import at, form_of
from sim.ui.form import Drawing, used_values
from sim.ui.objectives import draw_objectives
from sim.ui.state import State
from sim.ui.uploading import draw_uploads

__all__ = ["draw_sidebar"]

_COMMON = {
    "Model and hardware": (
        "model",
        "deployment.gpu",
        "deployment.replicas",
        "deployment.parallelism.tp",
        "deployment.quantization.weights",
        "deployment.quantization.kv_cache",
    ),
    "Engine": ("engine.kind", "engine.version"),
    "Traffic": ("workload.arrivals", "workload.lengths", "workload.num_requests"),
}
"""What stands open, by heading."""
_DRAWERS = {
    "Parallelism and precision": ("deployment",),
    "Engine flags and scheduler": ("engine",),
    "Mixture of experts": ("moe",),
    "Prefixes and patience": ("workload",),
}
"""Fields that are left, by drawer; one more takes what none of these has."""


def draw_sidebar(state: State, experiment: Experiment | None, error: UserError | None) -> Drawing:
    """Draw all fields of *state*; *error* is shown at the field that it is about."""
    drawing = Drawing(state, used_values(experiment), error, {"name", "sweep", "search"})
    nodes = list(form_of(Experiment))
    for heading, paths in _COMMON.items():
        st.subheader(heading, anchor=False)
        drawing.draw(at(nodes, paths))
    st.subheader("Objectives and price", anchor=False)
    draw_objectives(drawing)
    drawing.draw(at(nodes, ["prices.gpu_hour_usd"]))
    for title, paths in _DRAWERS.items():
        drawing.drawer(title, at(nodes, paths))
    drawing.drawer("Everything else", nodes)
    with st.expander("Upload a model, trace or loads"):
        draw_uploads(state, ("model", "trace", "loads"))
    st.button("Back to the worked example", on_click=state.reset, icon=":material/restart_alt:")
    return drawing
