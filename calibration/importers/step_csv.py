"""Iterations of an engine, one row each: what was in the batch and how long it took, in milliseconds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from calibration.reading import Record, Table, table_format
from calibration.runs import Run, Steps

__all__ = ["FORMATS"]

_COLUMNS = ("num_prefill_tokens", "num_decode_seqs", "sum_kv_tokens", "step_ms")
_DEPLOYMENT = ("model", "gpu", "tp", "experiment")


def _runs(table: Table) -> Iterator[Run]:
    return (_run(list(rows)) for _, rows in itertools.groupby(table.records, key=_deployment))


def _deployment(row: Record) -> list[str]:
    return [str(row.data.get(name, "")) for name in _DEPLOYMENT]


def _run(rows: list[Record]) -> Run:
    first = rows[0]
    return Run(
        case_id=first.text("experiment"),
        model=first.text("model"),
        gpu=first.text("gpu"),
        tp=first.whole("tp"),
        steps=Steps(
            step_s=_column(rows, "step_ms") * 1e-3,
            prefill_requests=_column(rows, "num_prefill_reqs"),
            prefill_tokens=_column(rows, "num_prefill_tokens"),
            decode_sequences=_column(rows, "num_decode_seqs"),
            kv_tokens=_column(rows, "sum_kv_tokens"),
            gap_steps=_column(rows, "gap_steps") if "gap_steps" in first else None,
            exact=_column(rows, "exact") if "exact" in first else None,
        ),
    )


def _column(rows: list[Record], name: str) -> NDArray[np.float64]:
    values = (row.number(name) for row in rows)
    return np.array([np.nan if value is None else value for value in values])


FORMATS = (table_format("step trace", _COLUMNS, _runs),)
