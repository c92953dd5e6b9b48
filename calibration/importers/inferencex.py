"""InferenceX: the dashboard's CSV export and API rows, and the result files of its jobs.

All latencies are seconds, also below the export's headings "(ms)": interactivity, which is 1/TPOT in tokens/s, tells
which it is. Rates are per GPU, and prompts count in the total. Of aggregated rows ``num_decode_gpu`` is TP times EP by
mistake; TP is right. Lengths are nominal: they are drawn from 0.8 to 1.0 times that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from calibration.reading import Record, Table, record_format, table_format
from calibration.runs import Run, latencies, load_of

__all__ = ["FORMATS"]

_NAMES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}
_STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
_LABELS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E Latency"}
_ROW = {
    "tp": ("decode_tp", "tp"),
    "ep": ("decode_ep", "ep"),
    "prefill_gpus": ("num_prefill_gpu",),
    "decode_gpus": ("num_decode_gpu",),
    "dp_attention": ("decode_dp_attention", "dp_attention"),
    "disaggregated": ("disagg",),
    "speculation": ("spec_method", "spec_decoding"),
    "date": ("date",),
    "source": ("run_url",),
    "version": ("image",),
    "gpu": ("hardware", "hw"),
    "engine": ("framework",),
    "model": ("model",),
    "weight_dtype": ("precision",),
    "input_len": ("isl",),
    "output_len": ("osl",),
    "concurrency": ("conc",),
    "total_tok_s": ("tput_per_gpu",),
    "output_tok_s": ("output_tput_per_gpu",),
}
"""What a row of the API is called by; the names of jobs' result files come second."""
_EXPORT = _ROW | {
    "tp": ("TP",),
    "ep": ("EP",),
    "prefill_gpus": ("Num Prefill GPUs",),
    "decode_gpus": ("Num Decode GPUs",),
    "dp_attention": ("DP Attention",),
    "disaggregated": ("Disaggregated",),
    "speculation": ("Spec Decoding",),
    "date": ("Date",),
    "gpu": ("Hardware",),
    "engine": ("Framework",),
    "model": ("Model",),
    "weight_dtype": ("Precision",),
    "input_len": ("ISL",),
    "output_len": ("OSL",),
    "concurrency": ("Concurrency",),
    "total_tok_s": ("Throughput/GPU (tok/s)",),
    "output_tok_s": ("Output Throughput/GPU (tok/s)",),
}
"""The same in the dashboard's export."""


def _run(row: Record, measured: Record, keys: Mapping[str, tuple[str, ...]], times: dict[str, Any]) -> Run:
    """Return the run of a *row* and its *measured* part by what *keys* calls each field; *times* has its latencies."""
    tp, disaggregated = row.whole(*keys["tp"]), bool(row.flag(*keys["disaggregated"]))
    gpus = _added(row.whole(*keys["prefill_gpus"]), row.whole(*keys["decode_gpus"])) if disaggregated else tp
    # Of a disaggregated row the output's is per decoding GPU, as far as can be told.
    rates = ("total_tok_s",) if disaggregated else ("total_tok_s", "output_tok_s")
    each = {name: measured.number(*keys[name]) for name in rates}
    of_all: dict[str, Any] = {name: value * gpus for name, value in each.items() if value is not None and gpus}
    texts = ("date", "source", "version", "gpu", "engine", "model", "weight_dtype")
    said: dict[str, Any] = {name: row.text(*keys[name]) for name in texts}
    return Run(
        tp=tp,
        n_gpus=gpus,
        ep=row.whole(*keys["ep"]),
        dp_attention=row.flag(*keys["dp_attention"]),
        mode=_mode(disaggregated, row.text(*keys["speculation"])),
        input_len=row.number(*keys["input_len"]),
        output_len=row.number(*keys["output_len"]),
        len_distribution="uniform 0.8-1.0 x nominal",
        **said,
        **load_of(None, row.number(*keys["concurrency"])),
        **of_all,
        **times,
    )


def _added(prefill: int | None, decode: int | None) -> int | None:
    return None if prefill is None or decode is None else prefill + decode


def _mode(disaggregated: bool, speculation: str | None) -> str:
    return ("disagg" if disaggregated else "agg") + ("" if speculation in (None, "none") else "+spec")


def _of_row(record: Record) -> Iterator[Run]:
    measured = record.child("metrics") if "metrics" in record else record
    times = {
        metric: measured.numbers({key: f"{word}_{name}" for key, word in _STATISTICS.items()})
        for metric, name in _NAMES.items()
    }
    yield _run(record, measured, _ROW, latencies(times))


def _of_export(table: Table) -> Iterator[Run]:
    for row in table.records:
        times = {metric: row.numbers(_headings(label)) for metric, label in _LABELS.items()}
        yield _run(row, row, _EXPORT, latencies(times, _unit_s(row)))


def _headings(label: str) -> dict[str, str]:
    return {"mean": f"Mean {label} (ms)", "p50": f"Median {label} (ms)", "p99": f"P99 {label} (ms)"}


def _unit_s(row: Record) -> float:
    """Return the unit that makes TPOT times interactivity 1, whatever the heading says."""
    name = "Median" if row.number("Median TPOT (ms)") else "Mean"
    tpot, rate = row.number(f"{name} TPOT (ms)"), row.number(f"{name} Interactivity (tok/s/user)")
    if not tpot or not rate:
        raise row.error(f"{name} TPOT (ms)", "without TPOT and interactivity, its unit cannot be told")
    return 1.0 if tpot * rate < 30 else 1e-3  # 1 or 1000; their means do not multiply exactly


FORMATS = (
    record_format(
        "InferenceX API row",
        lambda record: record.has("isl", "osl", "conc") and ("metrics" in record or "tput_per_gpu" in record),
        _of_row,
    ),
    table_format("InferenceX CSV export", ("Hardware Key", "Throughput/GPU (tok/s)", "Mean TTFT (ms)"), _of_export),
)
