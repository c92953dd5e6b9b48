"""One row a request: when it was sent, how long it was, how long it took.

Rows of different deployments or rates are runs of their own. Where a column counts tokens as the server did, that is
believed rather than what a client asked for or tokenised again.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from calibration.reading import Content, Format, Record, Table
from calibration.runs import Requests, Run, load_of, summary_of

__all__ = ["FORMATS"]

_ARRIVALS = ("arrival_s", "arrival_rel_s", "send_timestamp_unix")
_COLUMNS: dict[str, tuple[tuple[str, float], ...]] = {
    "arrival_s": tuple((name, 1.0) for name in _ARRIVALS),
    "input_tokens": (("server_input_tokens", 1.0), ("input_tokens", 1.0), ("input_token_count", 1.0)),
    "output_tokens": (("generated_tokens", 1.0), ("output_tokens", 1.0), ("output_token_count", 1.0)),
    "ttft_s": (("ttft_s", 1.0), ("ttft_ms", 1e-3)),
    "tpot_s": (("tpot_s", 1.0), ("tpot_ms", 1e-3)),
    "e2e_s": (("e2e_s", 1.0), ("e2e_ms", 1e-3), ("latency_sec", 1.0)),
}
"""Field of `Requests` to the columns that may hold it, the best first, and their units."""
_DEPLOYMENT = (
    *("hardware", "gpu", "model", "tp", "dp", "max_num_seqs", "max_num_batched_tokens", "vllm_version", "engine_name"),
    "qps_target",
)


def _is_log(table: Table) -> bool:
    found = [any(table.has(name) for name, _ in choices) for choices in _COLUMNS.values()]
    return found[0] and found[2] and found[5] and "step_ms" not in table.header


def _read(content: Content) -> Iterator[Run]:
    for table in filter(_is_log, content.tables):
        for _, rows in itertools.groupby(sorted(table.records, key=_deployment), key=_deployment):
            yield _run(list(rows))


def _deployment(row: Record) -> list[str]:
    return [str(row.data.get(name, "")) for name in _DEPLOYMENT]


def _run(rows: list[Record]) -> Run:
    completed = [row for row in rows if not _failed(row)]
    requests = Requests(**{field: _column(completed, field) for field in _COLUMNS})
    first, rate = rows[0], rows[0].number("qps_target")
    version = first.text("vllm_version")
    return Run(
        engine=first.text("engine_name") or ("vllm" if version else None),
        version=version,
        gpu=first.text("hardware", "gpu"),
        model=first.text("model"),
        **first.wholes({name: name for name in ("tp", "dp", "max_num_seqs", "max_num_batched_tokens")}),
        **(load_of(rate, None) if rate else {"load": "trace"}),
        num_requests=len(rows),
        completed=len(completed),
        failed=len(rows) - len(completed),
        requests=requests,
        **(summary_of(requests) if completed else {}),
    )


def _failed(row: Record) -> bool:
    return row.flag("has_error") is True or row.flag("success") is False


def _column(rows: list[Record], field: str) -> Any:
    name, unit = next(((name, unit) for name, unit in _COLUMNS[field] if rows and name in rows[0]), (None, 1.0))
    if name is None:
        return None
    values = (row.number(name) for row in rows)
    return np.array([np.nan if value is None else value * unit for value in values])


FORMATS = (Format("per-request CSV", lambda content: any(map(_is_log, content.tables)), _read),)
