"""One page: an experiment as YAML, and its result as a table."""

from __future__ import annotations

from typing import Any

import streamlit as st

from sim.errors import ConfigError, SimError
from sim.experiment import experiment_of
from sim.report.table import objective
from sim.simulate import Result, simulate
from sim.yamlfile import parse_yaml

__all__ = ["main"]

_LATENCIES = {
    "ttft": "Time to first token",
    "tpot": "Time per output token",
    "itl": "Inter-token latency",
    "e2el": "End to end",
}
_STATISTICS = ("mean", "median", "p90", "p95", "p99")
_EXAMPLE = """\
model: meta-llama/Llama-3.3-70B-Instruct
deployment:
  gpu: H100-SXM-80GB
  replicas: 2
  parallelism: {tp: 4}
  quantization: {weights: fp8, kv_cache: fp8}
engine: {kind: vllm, version: "0.19", max_model_len: 32768}
workload:
  arrivals: {kind: poisson, rate: 4.0}
  lengths: {kind: preset, name: chat}
  num_requests: 500
slo: {ttft_p95: 2 s, tpot_p95: 50 ms}
prices: {gpu_hour_usd: 2.50}
"""


def main() -> None:
    """Draw the page."""
    st.set_page_config(page_title="servecast", layout="wide")
    st.title("servecast")
    st.caption("Simulate LLM serving before you buy the GPUs.")
    text = st.text_area("Experiment (YAML)", _EXAMPLE, height=340)
    try:
        result = _simulated(text)
    except SimError as error:
        st.error(str(error))
        return
    _show(result)


@st.cache_data(max_entries=64, show_spinner="Simulating ...")
def _simulated(text: str) -> Result:
    return simulate(experiment_of(parse_yaml(text, "experiment", ConfigError)))


def _show(result: Result) -> None:
    values = result.summary.as_dict()
    cards: dict[str, Any] = {
        "Output tokens/s": f"{values['output_throughput']:,.0f}",
        "Output tokens/s per GPU": f"{values['output_tok_s_per_gpu']:,.0f}",
        "KV cache at peak": f"{values['kv_utilization_peak']:.0%}",
        "Limited by": values["binding_limit"],
    }
    for column, (label, value) in zip(st.columns(len(cards)), cards.items(), strict=True):
        column.metric(label, value)
    st.table(
        {
            "latency [ms]": list(_LATENCIES.values()),
            "mean, 90 % interval": [_interval(values["intervals"].get(f"mean_{key}_ms")) for key in _LATENCIES],
            **{name: [f"{values[f'{name}_{key}_ms']:,.1f}" for key in _LATENCIES] for name in _STATISTICS},
        }
    )
    for judged in result.summary.objectives.values():
        st.write(objective(judged, named=True))
    if (cost := values["cost_usd_per_mtok_output"]) is not None:
        st.write(f"\\${cost:,.2f} per million output tokens")
    statement = result.summary.steadiness.statement
    st.write(f"Limited by {result.summary.binding.sentence}. {statement}")
    for warning in values["warnings"]:
        if warning != statement:
            st.warning(warning)


def _interval(bounds: list[float] | None) -> str:
    return "-" if bounds is None else f"{bounds[0]:,.1f} to {bounds[1]:,.1f}"
