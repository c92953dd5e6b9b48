"""Explore: one deployment under one load, and what becomes of it."""

from __future__ import annotations

from concurrent.futures import CancelledError
from typing import Any

import streamlit as st

from sim.errors import SimError, UserError
from sim.experiment import Experiment
from sim.metrics.timeline import timeline_of
from sim.report.table import objective, share
from sim.simulate import ReadyPool, Result
from sim.simulate.moment import moment_of
from sim.study.answer import CheapestAnswer
from sim.study.fewest import search_for_fewest
from sim.ui import results
from sim.ui.charts.iteration import iteration_chart, roofline_chart
from sim.ui.charts.latency import LATENCIES, latency_chart
from sim.ui.charts.memory import memory_bar, memory_words
from sim.ui.charts.style import CONFIG
from sim.ui.charts.timeline import timeline_chart
from sim.ui.example import CHAT_70B
from sim.ui.exchange import draw_exchange
from sim.ui.session import show_in_url, state_of, tell_link_problem
from sim.ui.sidebar import draw_sidebar
from sim.ui.text import dollars, plainly, told
from sim.ui.waiting import instead, refused, result_of, when_done
from sim.units import format_seconds

__all__ = ["draw"]

_SHORT = ("TTFT", "TPOT", "ITL", "End to end")


def draw() -> None:
    """Draw the page."""
    state = state_of("explore", CHAT_70B)
    experiment, error = state.checked()
    with st.sidebar:
        drawing = draw_sidebar(state, experiment, error)
    tell_link_problem()
    result = None
    if experiment is None:
        refused(drawing.error)
    else:
        result = _answer(experiment)
    draw_exchange(state, result, "run")
    show_in_url(state)


def _answer(experiment: Experiment) -> Result | None:
    try:
        job = instead("run", results.ask_run(experiment))
    except UserError as error:
        refused(error)
        return None
    result = result_of(job, results.runs, "Simulating requests")
    if result is not None:
        _show(result)
    return result


def _show(result: Result) -> None:
    values = result.summary.as_dict()
    _headline(result)
    fewest = st.container(key="fewest")
    _cards(result, values)
    _latency(result, values)
    for pool in result.pools:
        _memory(pool)
    st.subheader("Over time", anchor=False)
    timeline = timeline_of(result.requests, result.strides, result.kv_blocks)
    st.plotly_chart(
        timeline_chart(timeline),
        config=CONFIG,
        key="timeline",
        alt="Requests waiting and running, share of the KV cache in use, and output tokens a second over time",
    )
    _iteration(result)
    with fewest:  # last, so that the search does not hold up the figures
        _fewest(result)


def _headline(result: Result) -> None:
    summary = result.summary
    missed = [objective(judged, named=True) for judged in summary.objectives.values() if not judged.met]
    missed += [f"{name}: {share(found)}" for name, found in summary.shares.items() if not found.met]
    asked = len(summary.objectives) + len(summary.shares)
    if not asked:
        verdict = "serve this load; no objective is set"
    else:
        verdict = f"miss {len(missed)} of {asked} objectives" if missed else "keep every objective"
    st.header(f"{' and '.join(map(_gpus, result.pools))} {verdict}", anchor=False)
    models = " · ".join(
        dict.fromkeys(f"{plainly(pool.setup.model.name)} on {_replicas(pool)}" for pool in result.pools)
    )
    st.markdown(f"{models} · **Limited by {summary.binding.sentence}.** {summary.steadiness.statement}")
    for text in missed:
        st.error(text, icon=":material/close:")
    for warning in summary.warnings:
        if warning != summary.steadiness.statement:
            _warning(warning)


def _gpus(pool: ReadyPool) -> str:
    deployment = pool.experiment.deployment
    return f"{deployment.replicas * deployment.parallelism.gpus:,} x {pool.setup.hardware.name}"


def _replicas(pool: ReadyPool) -> str:
    deployment = pool.experiment.deployment
    return f"{deployment.replicas} replica{'s' if deployment.replicas > 1 else ''} of {deployment.parallelism.gpus}"


def _fewest(result: Result) -> None:
    """Say how many of these accelerators are enough, as soon as that is known."""
    experiment = result.experiment
    if not (result.summary.objectives or result.summary.shares) or experiment.pools:
        return
    try:
        job = instead("fewest", results.ask_search(search_for_fewest(experiment)))
    except UserError:
        return
    if not job.finished:
        when_done(job, "Counting how many of these GPUs would be enough ...")
        return
    try:
        answer = job.result()
    except CancelledError:  # another question came in between, and this one is back
        results.searches.forget(job)
        st.rerun()
    except SimError as problem:
        st.markdown(f"No number of these is enough: {told(problem)}.")
        return
    if isinstance(answer, CheapestAnswer):
        best = answer.best
        low, high = best.gpus_interval
        st.markdown(
            f"**{best.gpus} of these GPUs are enough** to keep every objective with {answer.confidence:.0%} confidence"
            f" (90 % interval: {low} to {'more than were tried' if high is None else high})."
        )


def _warning(text: str) -> None:
    if text.startswith("intervals"):
        st.caption(plainly(f"90 % {text}."))
    else:
        st.warning(plainly(f"{text[:1].upper()}{text[1:]}."), icon=":material/warning:")


def _cards(result: Result, values: dict[str, Any]) -> None:
    cost, energy = values["cost_usd_per_mtok_output"], values["energy_j_per_output_tok"]
    cards = {
        "GPUs": (f"{result.summary.bill.num_gpus:,}", "Accelerators of the whole deployment."),
        "Tokens/s": (
            f"{values['output_throughput']:,.0f}",
            f"Output of all replicas. {_between(values, 'output_throughput', 'tokens/s')}",
        ),
        "TTFT p95": (format_seconds(values["p95_ttft_ms"] / 1e3), _between(values, "p95_ttft_ms", "ms")),
        "TPOT p95": (format_seconds(values["p95_tpot_ms"] / 1e3), _between(values, "p95_tpot_ms", "ms")),
        "$ per Mtok": (
            "no price" if cost is None else f"${cost:,.2f}",
            "Of a million output tokens, all accelerators paid for.",
        ),
        "KV peak": (f"{values['kv_utilization_peak']:.0%}", "Of the blocks of the fullest replica."),
    }
    bill = result.summary.bill
    if energy is not None and bill.power_w is not None and bill.facility_power_w is not None:
        boards = f"the boards alone {bill.power_w / 1e3:,.1f} kW, {energy:,.2f} J per output token"
        cards["Power"] = (f"{bill.facility_power_w / 1e3:,.1f} kW", f"With servers and cooling; {boards}.")
    with st.container(horizontal=True, key="cards"):
        for label, (value, about) in cards.items():
            st.metric(dollars(label), value, help=dollars(about), border=True, width=124)


def _between(values: dict[str, Any], key: str, unit: str) -> str:
    low, high = values["intervals"].get(key, (None, None))
    return "No interval is known." if low is None else f"90 % interval: {low:,.1f} to {high:,.1f} {unit}."


def _latency(result: Result, values: dict[str, Any]) -> None:
    st.subheader("Latency", anchor=False)
    chart, table = st.columns([3, 5], gap="medium")
    with chart:
        st.plotly_chart(latency_chart(values), config=CONFIG, key="latency", alt="Latency percentiles; see the table")
    with table:
        st.dataframe(
            {
                "ms": list(_SHORT),
                "mean": [values[f"mean_{key}_ms"] for key in LATENCIES],
                "90 % interval": [_interval(values["intervals"].get(f"mean_{key}_ms")) for key in LATENCIES],
                **{
                    name: [values[f"{statistic}_{key}_ms"] for key in LATENCIES]
                    for statistic, name in (("median", "p50"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99"))
                },
            },
            hide_index=True,
            column_config={
                name: st.column_config.NumberColumn(format="%.1f") for name in ("mean", "p50", "p90", "p95", "p99")
            },
            alt="Latencies in milliseconds: mean with its 90 % interval, and percentiles",
        )
        for judged in result.summary.objectives.values():
            sign = ":material/check:" if judged.met else ":material/close:"
            st.markdown(f"{sign} {objective(judged, named=True)} ({judged.share_within:.1%} of requests within)")
        for name, found in result.summary.shares.items():
            sign = ":material/check:" if found.met else ":material/close:"
            st.markdown(f"{sign} {name}: {share(found)}")


def _interval(bounds: list[float] | None) -> str:
    return "unknown" if bounds is None else f"{bounds[0]:,.1f} to {bounds[1]:,.1f}"


def _memory(pool: ReadyPool) -> None:
    plan = pool.setup.memory
    if plan is None:
        return
    st.subheader(f"Memory of a card{f' of {pool.name}' if pool.name else ''}", anchor=False)
    words = f"Memory of one card: {memory_words(plan)}"
    st.plotly_chart(memory_bar(plan), config=CONFIG, key=f"memory {pool.name}", alt=words)
    st.caption(
        f"Room for {plan.kv_tokens:,} tokens of KV cache a replica: {plan.concurrency(2048):,.0f} requests of 2,048"
        f" tokens at once, {plan.max_concurrency:,.1f} of the longest."
    )


def _iteration(result: Result) -> None:
    st.subheader("One iteration", anchor=False)
    percent = st.slider(
        "Moment of the run [% of busy time]", 0, 100, 50, help="Which iteration is taken apart.", key="moment"
    )
    moment = moment_of(result, percent / 100)
    if moment is None:
        st.info("Nothing ran.")
        return
    batch = moment.batch
    st.caption(
        f"At {moment.time_s:,.1f} s on replica {moment.replica}: {batch.decodes:,} requests decode and "
        f"{batch.prefill_tokens:,} prompt tokens are computed, in {format_seconds(moment.total_s)}."
    )
    left, right = st.columns(2, gap="medium")
    longest = max(moment.seconds, key=lambda name: moment.seconds[name])
    with left:
        st.markdown("**Where its time goes**")
        st.plotly_chart(
            iteration_chart(moment),
            config=CONFIG,
            key="iteration",
            alt=f"Time of each operation; the longest is {longest.replace('_', ' ')}",
        )
    if moment.operations:
        with right:
            st.markdown("**Roofline**")
            st.plotly_chart(
                roofline_chart(moment),
                config=CONFIG,
                key="roofline",
                alt="Share of the arithmetic peak that each operation reaches, by its arithmetic intensity",
            )
