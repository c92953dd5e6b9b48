"""Compare: two to four configurations side by side, by how much they differ, and why."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from sim.errors import UserError
from sim.experiment import Experiment
from sim.report.compare import TITLES
from sim.report.json import to_json
from sim.study.compare import Comparison, Difference
from sim.ui import results, sides
from sim.ui.charts.comparison import operations_chart
from sim.ui.charts.style import CONFIG
from sim.ui.control import at, form_of
from sim.ui.form import Drawing, used_values
from sim.ui.session import show_in_url, tell_link_problem
from sim.ui.state import State
from sim.ui.text import plainly
from sim.ui.waiting import instead, refused, result_of

__all__ = ["draw"]

_FIELDS = (
    "model",
    "deployment.gpu",
    "deployment.replicas",
    "deployment.parallelism.tp",
    "deployment.quantization.weights",
    "deployment.quantization.kv_cache",
    "engine.kind",
    "engine.version",
    "engine.prefix_caching",
)
_REPLICATIONS = 3
_LETTERS = "ABCD"


def draw() -> None:
    """Draw the page."""
    base = sides.base()
    with st.sidebar:
        st.subheader("A: as on Explore", anchor=False)
        st.caption("Everything of it is set there; what it has, the others have too, unless they say otherwise.")
        drawn = [(base, Drawing(base, {}, base.checked()[1]))]
        drawn += [(side, _form(side, letter)) for letter, side in zip(_LETTERS[1:], sides.others(), strict=False)]
        if len(sides.others()) < sides.MOST:
            st.button("Add a configuration", on_click=sides.add, icon=":material/add:")
    tell_link_problem()
    _answer(drawn)
    show_in_url(base, sides.query())


def _form(side: State, letter: str) -> Drawing:
    experiment, error = side.checked()
    drawing = Drawing(side, used_values(experiment), error)
    with st.expander(f"{letter}: {sides.name_of(side)}", expanded=letter == "B"):
        drawing.draw(at(form_of(Experiment), _FIELDS))
        st.button("Remove", key=f"remove {side.name}", on_click=sides.remove, args=(side,), icon=":material/delete:")
    return drawing


def _answer(drawn: list[tuple[State, Drawing]]) -> None:
    if len(drawn) < 2:
        st.info("Add a configuration on the left.")
        return
    experiments: dict[str, Experiment] = {}
    for letter, (side, drawing) in zip(_LETTERS, drawn, strict=False):
        experiment, _ = side.checked()
        if experiment is None:
            st.markdown(f"Configuration {letter} cannot be run:")
            refused(drawing.error)
            return
        experiments[letter] = experiment
    try:
        job = instead("comparison", results.ask_comparison(experiments, _REPLICATIONS))
    except UserError as error:
        refused(error)
        return
    comparison = result_of(job, results.comparisons, "Running each of them three times")
    if comparison is not None:
        _show(comparison, [side for side, _ in drawn])


def _show(comparison: Comparison, shown: list[State]) -> None:
    st.header(f"{len(shown)} configurations under the same requests", anchor=False)
    names = ["as on Explore", *map(sides.name_of, shown[1:])]
    st.markdown(
        " · ".join(f"**{side.name}**: {plainly(name)}" for side, name in zip(comparison.sides, names, strict=True))
    )
    for sentence in comparison.sentences():
        st.markdown(f"- {plainly(sentence)}")
    for note in comparison.notes():
        st.caption(plainly(note))
    table: dict[str, list[str]] = {"": [], comparison.base.name: []}
    for side, _ in comparison.pairs():
        table |= {side.name: [], f"{side.name} against {comparison.base.name}": []}
    for key, title in TITLES.items():
        if all(key in differences for differences in comparison.differences):
            for column, cell in zip(table, _cells(comparison, key, title), strict=True):
                table[column].append(cell)
    st.dataframe(
        table, hide_index=True, height="content", alt="Results of each configuration, and differences to the first"
    )
    st.caption("Differences with 90 % intervals over three runs with common random numbers; ~ is within noise.")
    if any(side.anatomy.operations_s for side in comparison.sides):
        st.subheader("Where a mean iteration goes", anchor=False)
        chart = operations_chart(comparison)
        st.plotly_chart(
            chart, config=CONFIG, key="operations", alt="Mean iteration by operation, for each configuration"
        )
    st.download_button(
        "Comparison (JSON)",
        to_json(comparison.as_dict()) + "\n",
        "compare.json",
        "application/json",
        icon=":material/download:",
        on_click="ignore",
    )


def _cells(comparison: Comparison, key: str, title: str) -> Iterator[str]:
    yield title
    yield _number(comparison.differences[0][key].base)
    for _, differences in comparison.pairs():
        yield _number(differences[key].other)
        yield _difference(differences[key])


def _difference(found: Difference) -> str:
    """Return the difference in per cent with its interval, or as it is where there is nothing to compare with."""
    share = f"{found.ratio - 1:+.0%}" if found.base else "-"
    if found.low is None or found.high is None:
        return share
    ends = (f"{end / abs(found.base):+.1%}" if found.base else _number(end) for end in (found.low, found.high))
    return f"{share} ({' to '.join(ends)}){'' if found.sure else ' ~'}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
