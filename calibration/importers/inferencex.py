"""InferenceX: the dashboard's CSV export and API rows, and the result files of its jobs.

All latencies are seconds, also below the export's headings "(ms)": interactivity, which is 1/TPOT in tokens/s, tells
which it is. Rates are per GPU, and prompts count in the total. Of aggregated rows ``num_decode_gpu`` is TP times EP by
mistake; TP is right. Lengths are nominal: they are drawn from 0.8 to 1.0 times that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibration.reading import Record, Table, record_format, table_format
from calibration.runs import Run, latencies, load_of

__all__ = ["FORMATS"]

_NAMES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e": "e2el"}
_STATISTICS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
_LABELS = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2e": "E2E Latency"}
_LENGTHS = "uniform 0.8-1.0 x nominal"


def _of_row(record: Record) -> Iterator[Run]:
    measured = record.child("metrics") if "metrics" in record else record
    tp, disaggregated = record.whole("decode_tp", "tp"), bool(record.flag("disagg"))
    gpus = _gpus(record, "num_prefill_gpu", "num_decode_gpu") if disaggregated else tp
    # Of a disaggregated row it is per decoding GPU, as far as can be told.
    output = None if disaggregated else measured.number("output_tput_per_gpu")
    yield Run(
        tp=tp,
        n_gpus=gpus,
        len_distribution=_LENGTHS,
        date=record.text("date"),
        source=record.text("run_url"),
        version=record.text("image"),
        gpu=record.text("hardware", "hw"),
        ep=record.whole("decode_ep", "ep"),
        dp_attention=record.flag("decode_dp_attention", "dp_attention"),
        mode=_mode(disaggregated, record.text("spec_method", "spec_decoding")),
        engine=record.text("framework"),
        model=record.text("model"),
        weight_dtype=record.text("precision"),
        input_len=record.number("isl"),
        output_len=record.number("osl"),
        **load_of(None, record.number("conc")),
        **_rates(measured.number("tput_per_gpu"), output, gpus),
        **latencies({metric: measured.numbers(_keys(name)) for metric, name in _NAMES.items()}),
    )



def _mode(disaggregated: bool, speculation: str | None) -> str:
    return ("disagg" if disaggregated else "agg") + ("" if speculation in (None, "none") else "+spec")


def _rates(total: float | None, output: float | None, gpus: int | None) -> dict[str, Any]:
    """Return the rates of the whole deployment from those of one GPU."""
    each = {"total_tok_s": total, "output_tok_s": output}
    return {name: value * gpus for name, value in each.items() if value is not None and gpus}


def _of_export(table: Table) -> Iterator[Run]:
    return (_exported(row) for row in table.records)


def _exported(row: Record) -> Run:
    tp, disaggregated = row.whole("TP"), bool(row.flag("Disaggregated"))
    gpus = _gpus(row, "Num Prefill GPUs", "Num Decode GPUs") if disaggregated else tp
    output = None if disaggregated else row.number("Output Throughput/GPU (tok/s)")
    return Run(
        tp=tp,
        n_gpus=gpus,
        len_distribution=_LENGTHS,
        date=row.text("Date"),
        engine=row.text("Framework"),
        gpu=row.text("Hardware"),
        ep=row.whole("EP"),
        dp_attention=row.flag("DP Attention"),
        mode=_mode(disaggregated, row.text("Spec Decoding")),
        model=row.text("Model"),
        weight_dtype=row.text("Precision"),
        input_len=row.number("ISL"),
        output_len=row.number("OSL"),
        **load_of(None, row.number("Concurrency")),
        **_rates(row.number("Throughput/GPU (tok/s)"), output, gpus),
        **latencies({metric: row.numbers(_headings(label)) for metric, label in _LABELS.items()}, _unit_s(row)),
    )


def _gpus(record: Record, prefill: str, decode: str) -> int | None:
    counts = (record.whole(prefill), record.whole(decode))
    return None if counts[0] is None or counts[1] is None else counts[0] + counts[1]


def _headings(label: str) -> dict[str, str]:
    return {"mean": f"Mean {label} (ms)", "p50": f"Median {label} (ms)", "p99": f"P99 {label} (ms)"}


def _keys(name: str) -> dict[str, str]:
    return {key: f"{word}_{name}" for key, word in _STATISTICS.items()}


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
