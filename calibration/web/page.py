"""Calibrate: somebody's own benchmark files against the prediction, and constants fitted to them."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import streamlit as st

from calibration.assumptions import assumed_in_short
from calibration.cases.not_modelled import IF_KNOWN
from calibration.cases.serving import ServingCase
from calibration.table import FlaggedRun
from calibration.validation.summary import error_statistics
from calibration.web.cases import ASSUMED, Compared, Imported, compare_cases, fit_cases, imported, shipped_example
from calibration.web.charts import prediction_scatter, said_of
from calibration.web.fitted import draw_fit
from sim.errors import SimError
from sim.profiles.folders import names
from sim.ui.charts.style import CONFIG
from sim.ui.results import Kept
from sim.ui.session import show_in_url, uploads
from sim.ui.text import plainly, told
from sim.ui.waiting import result_of

__all__ = ["draw"]

_MOST_MB = 20
_FEW = 5
_ROW_PX = 35
_METRICS = ("ttft_mean_ms", "tpot_mean_ms", "e2e_mean_ms")
_work = Kept()


def draw() -> None:
    """Draw the page."""
    show_in_url()
    with st.sidebar:
        _uploader()
        assumed = _assumptions()
        st.button("Back to the worked example", on_click=_forget, icon=":material/restart_alt:")
    files = [uploads().folder / name for name in uploads().names("benchmark")]
    found = imported(files, assumed) if files else Imported(cases=shipped_example())
    for problem in found.problems:
        st.error(problem)
    if not found.cases and not found.runs:
        st.info("No run was found in these files.")
        return
    _headline(found, own=bool(files))
    if found.runs:
        _flags(found.runs)
    if not found.cases:
        st.info("These files hold iterations of an engine: `python -m calibration validate` and `fit` take them.")
        return
    _rows(found.cases)
    _predictions(found.cases)
    _fit(found.cases, ", ".join(path.name for path in files) or "measurements that come along")


def _uploader() -> None:
    st.subheader("Benchmark files", anchor=False)

    def keep() -> None:
        problems = []
        for file in st.session_state["benchmarks"] or []:
            try:
                uploads().add(file.name, file.getvalue(), "benchmark")
            except SimError as problem:
                problems.append(told(problem))
        st.session_state["benchmark problems"] = problems

    st.file_uploader(
        "Output of benchmark tools",
        accept_multiple_files=True,
        key="benchmarks",
        on_change=keep,
        max_upload_size=_MOST_MB,
        help="vllm bench, SGLang, TensorRT-LLM, GuideLLM, GenAI-Perf, LLMPerf, llama-bench and a dozen more; plain or"
        " gzipped. What is in a file is found out from its content.",
    )
    for problem in st.session_state.get("benchmark problems", []):
        st.error(problem)


def _assumptions() -> dict[str, str]:
    st.subheader("Where a file does not say", anchor=False)
    choices = {"gpu": names("hardware"), "model": names("models"), "engine": names("engines")}
    labels = dict(zip(ASSUMED, ("GPU", "Model", "GPUs a replica (TP)", "Engine", "Engine version"), strict=True))
    assumed: dict[str, str] = {}
    for column, label in labels.items():
        key, about = f"assumed {column}", "Fills cells that are empty; what a file states is kept."
        if column in choices:
            value = st.selectbox(label, [None, *choices[column]], format_func=_or_unknown, key=key, help=about)
        else:
            value = st.text_input(label, key=key, help=about, max_chars=20).strip()
        if value:
            assumed[column] = value
    return assumed


def _or_unknown(name: str | None) -> str:
    return name or "unknown"


def _forget() -> None:
    uploads().remove("benchmark")
    st.session_state["benchmark problems"] = []


def _headline(found: Imported, *, own: bool) -> None:
    if not own:
        st.header(f"{len(found.cases)} measured runs of vLLM on an H100, and what is predicted", anchor=False)
        st.markdown("A worked example. **Upload your own benchmark files on the left**; nothing leaves this machine.")
        return
    flagged = sum(1 for _, flags in found.runs if any(flag.severity == "warning" for flag in flags))
    st.header(_said_of_files(len(found.runs), flagged), anchor=False)


def _said_of_files(runs: int, flagged: int) -> str:
    if runs == 1:
        return f"1 run in your files, which {'does not add up' if flagged else 'does not contradict itself'}"
    found = f"{flagged} of them with something that does not add up"
    return f"{runs} runs in your files, {found if flagged else 'nothing in them contradicts itself'}"


def _flags(runs: Sequence[FlaggedRun]) -> None:
    seen = Counter(f"{Path(run.file).name}: {flag.check}: {flag.text}" for run, flags in runs for flag in flags)
    if seen:
        with st.expander(f"What does not add up ({seen.total()})"):
            for text, count in seen.items():
                st.markdown(f"- {plainly(text)}{f' (and {count - 1} more)' if count > 1 else ''}")


def _rows(cases: Sequence[ServingCase]) -> None:
    st.subheader("Runs", anchor=False)
    columns = ("case_id", "engine", "engine_version", "gpu", "tp", "model", "input_len", "output_len", "load_type")
    shown = (*columns, "load_value", *_METRICS)
    files = [Path(case.text("file")).name for case in cases]
    table = {"file": files} if any(files) else {}
    table |= {column: [_short(case.text(column)) for case in cases] for column in shown}
    widths = {"file": 160, "case_id": 220, "model": 260, "gpu": 150}
    st.dataframe(
        table,
        hide_index=True,
        height=min(220, _ROW_PX * (len(cases) + 1) + 3),
        column_config={name: st.column_config.TextColumn(width=width) for name, width in widths.items()},
        alt="Runs as they were read, one a row; empty cells are unknown",
    )


def _short(cell: str) -> str:
    """Return a number with many decimals to five digits, and any other text as it is."""
    return f"{float(cell):.5g}" if re.fullmatch(r"\d+\.\d{3,}", cell) else cell


def _key(what: str, cases: Sequence[ServingCase]) -> str:
    rows = sorted(repr(sorted(case.row.items())) for case in cases)
    return f"{what} {hashlib.sha256(''.join(rows).encode()).hexdigest()}"


def _predictions(cases: list[ServingCase]) -> None:
    st.subheader("Predicted against measured, as shipped", anchor=False)
    key = _key("predict", cases)
    job = _work.ask(key, lambda on_progress: compare_cases(cases, on_progress))
    runs = result_of(job, _work, "Simulating the runs")
    if runs is None:
        return
    skipped = Counter(run.skipped.partition(IF_KNOWN)[0] for run in runs if run.skipped)
    if skipped:
        _refused(skipped, len(runs))
    if skipped.total() == len(runs):
        return
    predicted = [run for run in runs if not run.skipped]
    if assumed := assumed_in_short([run.assumed for run in predicted]):
        st.caption(plainly(f"Assumed: {assumed}."))
    with st.container(horizontal=True):
        for metric, errors in _errors(predicted).items():
            of_all = "mean {mape:.1f} %, bias {bias:+.1f} %, {n} runs".format(**error_statistics(errors))
            st.metric(
                f"{said_of(metric)}, median error",
                f"{median(map(abs, errors)):.1f} %",
                border=True,
                width=190,
                help=f"Half of the runs are off by less. Of all: {of_all}.",
            )
    chart = prediction_scatter(predicted, _METRICS)
    st.plotly_chart(chart, config=CONFIG, key="predictions", alt="Predicted over measured latencies, one point a run")
    with st.expander("Each run", expanded=len(predicted) <= _FEW):
        st.dataframe(_each(predicted), hide_index=True, alt="Measured and predicted latencies of each run")


def _refused(reasons: Counter[str], runs: int) -> None:
    """Say how many runs cannot be simulated, and why."""
    listed = [told(SimError(reason)) for reason in reasons]
    one = f": {listed[0]}" if len(listed) == 1 else ""
    st.warning(f"{reasons.total()} of {runs} runs cannot be simulated{one}.")
    if any(reason.startswith("not stated") for reason in reasons):
        st.info("Say on the left what the files do not, such as the GPU.")
    if len(listed) > 1:
        with st.expander("Why not"):
            for text, count in zip(listed, reasons.values(), strict=True):
                st.markdown(f"- {count}: {text}")


def _errors(runs: Sequence[Compared]) -> dict[str, list[float]]:
    """Return the errors of each latency that was measured [%]."""
    errors = {metric: [run.error_pct(metric) for run in runs] for metric in _METRICS}
    known = {metric: [error for error in found if error is not None] for metric, found in errors.items()}
    return {metric: found for metric, found in known.items() if found}


def _each(runs: Sequence[Compared]) -> dict[str, list[str]]:
    """Return measured, predicted and error of each latency by run."""
    table = {"run": [run.name for run in runs]}
    for metric in _errors(runs):
        name = said_of(metric)
        table[f"{name} measured [ms]"] = [_figure(run.measured.get(metric)) for run in runs]
        table[f"{name} predicted [ms]"] = [_figure(run.predicted.get(metric)) for run in runs]
        table[f"{name} error [%]"] = [_figure(run.error_pct(metric), "+.1f") for run in runs]
    return table


def _figure(value: float | None, shown: str = ",.4g") -> str:
    return "" if value is None else f"{value:{shown}}" if abs(value) < 1e4 else f"{value:,.0f}"


def _fit(cases: list[ServingCase], source: str) -> None:
    st.subheader("Constants of the engine, fitted to these runs", anchor=False)
    key = _key("fit", cases)
    if st.button("Fit", type="primary", icon=":material/tune:", help="Takes from ten seconds to some minutes."):
        st.session_state["fitting"] = key
    if st.session_state.get("fitting") != key:
        st.caption("Four in five runs are fitted, and the fifth is kept back to judge the fit.")
        return
    job = _work.ask(key, lambda on_progress: fit_cases(cases, source, on_progress))
    outcome = result_of(job, _work, "Fitting, at most so many rounds of simulations")
    if outcome is not None:
        draw_fit(outcome)
