"""Our own table of serving measurements: one row a point, milliseconds, rates of the whole deployment.

Cells that name a number only in words, such as ``~7-60``, count as unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, cast

from calibration.reading import Record, Table, plain_number, table_format
from calibration.runs import LATENCIES, STATISTICS, LoadKind, Run, latencies

__all__ = ["FORMATS"]

_KEY_COLUMNS = ("case_id", "load_type", "load_value", "ttft_mean_ms", "tpot_mean_ms")
_TEXTS = (
    *("case_id", "source", "date", "engine", "gpu", "mode", "model", "weight_dtype", "kv_dtype"),
    *("len_distribution", "arrival", "quality", "notes"),
)
_WHOLE = (
    *("n_gpus", "tp", "pp", "ep", "dp", "max_num_seqs", "max_num_batched_tokens", "max_model_len"),
    *("num_requests", "kv_blocks", "kv_block_size"),
)
_NUMBERS = (
    *("gpu_memory_utilization", "input_len", "input_len_std", "output_len", "output_len_std", "shared_prefix_tokens"),
    *("prefix_hit_share", "rate_cap_rps", "inflight_cap", "output_tok_s", "total_tok_s", "req_s"),
)
_LOADS = ("concurrency", "rate", "offline", "batch")


def _runs(table: Table) -> Iterator[Run]:
    return (_run(row) for row in table.records)


def _run(row: Record) -> Run:
    numeric = Record({key: cell for key, cell in row.data.items() if _is_number(cell)}, row.file, row.line)
    return Run(
        **row.texts(_same(_TEXTS)),
        **numeric.wholes(_same(_WHOLE)),
        **numeric.numbers(_same(_NUMBERS)),
        version=row.text("engine_version"),
        dp_attention=True if row.text("dp") == "dpa" else None,
        chunked_prefill=row.flag("chunked_prefill"),
        prefix_caching=row.flag("prefix_caching"),
        **_load(row, numeric.number("load_value", infinite=True)),
        **latencies({metric: numeric.numbers(_columns(metric)) for metric in LATENCIES}, 1e-3),
    )


def _same(columns: Iterable[str]) -> dict[str, str]:
    return {name: name for name in columns}


def _columns(metric: str) -> dict[str, str]:
    return {name: f"{metric}_{name}_ms" for name in STATISTICS}


def _is_number(cell: str) -> bool:
    try:
        return not math.isnan(float(plain_number(cell)))
    except ValueError:
        return False


def _load(row: Record, value: float | None) -> dict[str, Any]:
    kind = row.text("load_type")
    if kind is None:
        return {}
    if kind not in _LOADS:
        raise row.error("load_type", f"unknown load {kind!r}: one of {', '.join(_LOADS)}")
    if kind == "rate" and value == math.inf:
        return {"load": "offline"}
    return {"load": cast("LoadKind", kind), "load_value": None if value == math.inf else value}


FORMATS = (table_format("servecast cases", _KEY_COLUMNS, _runs),)
