"""Calibrate: somebody's own benchmark files against the prediction, and constants fitted to them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from statistics import median

import streamlit as st

from calibration.cases.serving import ServingCase
from calibration.experiment.of_case import IF_KNOWN
from calibration.fitting.outcome import Outcome
from calibration.table import FlaggedRun
from calibration.web.cases import ASSUMED, Compared, Imported, compare_cases, fit_cases, imported, shipped_example
from calibration.web.charts import correlation_heat, fit_scatter, prediction_scatter, residual_chart
from sim.errors import SimError
from sim.profiles.folders import names
from sim.ui.charts.style import CONFIG
from sim.ui.example import CHAT_70B
from sim.ui.results import Kept
from sim.ui.session import show_in_url, state_of, uploads
from sim.ui.text import plainly, told
from sim.ui.waiting import result_of

__all__ = ["draw"]

_MOST_MB = 20
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
    seen: dict[str, int] = {}
    for _, flags in runs:
        for flag in flags:
            seen[f"{flag.check}: {flag.text}"] = seen.get(f"{flag.check}: {flag.text}", 0) + 1
    if seen:
        with st.expander(f"What does not add up ({sum(seen.values())})"):
            for text, count in seen.items():
                st.markdown(f"- {plainly(text)}{f' (and {count - 1} more)' if count > 1 else ''}")


def _rows(cases: Sequence[ServingCase]) -> None:
    st.subheader("Runs", anchor=False)
    columns = ("case_id", "engine", "engine_version", "gpu", "tp", "model", "input_len", "output_len", "load_type")
    shown = (*columns, "load_value", *_METRICS)
    table = {column: [_short(case.text(column)) for case in cases] for column in shown}
    widths = {"case_id": 220, "model": 260, "gpu": 150}
    st.dataframe(
        table,
        hide_index=True,
        height=220,
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
    skipped = [run.skipped for run in runs if run.skipped]
    if skipped:
        reason = told(SimError(skipped[0].partition(IF_KNOWN)[0]))
        st.warning(f"{len(skipped)} of {len(runs)} runs cannot be simulated: {reason}.")
    if len(skipped) == len(runs):
        st.info("Say on the left what the files do not, such as the GPU.")
        return
    with st.container(horizontal=True):
        for metric, error in _median_errors(runs).items():
            st.metric(
                f"{metric}, median error",
                f"{error:.1f} %",
                border=True,
                width=190,
                help="Half of the runs are off by less.",
            )
    chart = prediction_scatter(runs, _METRICS)
    st.plotly_chart(chart, config=CONFIG, key="predictions", alt="Predicted over measured latencies, one point a run")


def _median_errors(runs: Sequence[Compared]) -> dict[str, float]:
    errors = {metric: [run.error_pct(metric) for run in runs] for metric in _METRICS}
    known = {metric: [abs(error) for error in found if error is not None] for metric, found in errors.items()}
    return {metric.partition("_")[0].upper(): median(found) for metric, found in known.items() if found}


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
        _fitted(outcome)


def _fitted(outcome: Outcome) -> None:
    fitted = outcome.fitted
    st.markdown(f"{outcome.engine}: {len(outcome.used)} runs fitted, {len(outcome.held_out)} kept back.")
    left, right = st.columns(2, gap="medium")
    with left:
        st.dataframe(
            {
                "constant": [prior.name for prior in outcome.priors],
                "value": [f"{fitted.constants.constants[prior.name].value:.4g}" for prior in outcome.priors],
                "± standard error": [
                    f"{fitted.constants.constants[prior.name].stderr or 0:.2g}" for prior in outcome.priors
                ],
                "told by the runs": ["no" if prior.name in fitted.unknown else "yes" for prior in outcome.priors],
            },
            hide_index=True,
            alt="Fitted constants with standard errors",
        )
        groups = {"as shipped": outcome.before, "fitted": outcome.on_used, "kept back": outcome.on_held_out}
        st.dataframe(
            {
                "mean error [%]": list(groups),
                **{metric: [_mape(group.get(metric)) for group in groups.values()] for metric in outcome.metrics},
            },
            hide_index=True,
            alt="Mean absolute error in per cent: as shipped, on the runs that were fitted, on those kept back",
        )
    with right:
        st.plotly_chart(fit_scatter(outcome), config=CONFIG, key="fit", alt="Predicted over measured after the fit")
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Residuals**")
        st.plotly_chart(residual_chart(outcome), config=CONFIG, key="residuals", alt="Error of every run in per cent")
    with right:
        st.markdown("**Correlations**")
        chart = correlation_heat(outcome)
        st.plotly_chart(chart, config=CONFIG, key="correlations", alt="Correlations of the fitted constants")
    _take(outcome)


def _mape(found: Mapping[str, float] | None) -> str:
    return "" if found is None else f"{found['mape']:.1f}"


def _take(outcome: Outcome) -> None:
    name = f"my-{outcome.engine}"
    text = outcome.as_yaml(name)
    with st.container(horizontal=True):
        st.download_button(
            "Constants (YAML)", text, f"{name}.yaml", "application/yaml", icon=":material/download:", on_click="ignore"
        )
        if st.button("Use them in Explore", icon=":material/play_arrow:"):
            path = uploads().add(f"{name}.yaml", text.encode(), "constants")
            state_of("explore", CHAT_70B).set("engine.calibration", path.name)
            st.success(f"Explore now runs with `engine.calibration: {path.name}`.")
    st.caption("Put the file into `profiles/calibrated/engines/`, or beside the experiment that names it.")
