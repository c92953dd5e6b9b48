"""The names that cases can have: one list for the options of commands, what importers fill and rules read."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping
from typing import Final

from calibration.runs import LATENCIES, Run
from sim.errors import UserError, did_you_mean

__all__ = ["ARRAYS", "ASSUMABLE", "METRICS", "NAMES", "check_assumed", "check_where", "column_of", "is_path"]

METRICS: Final = (
    "output_tok_s",
    "total_tok_s",
    "req_s",
    *(f"{name}_{statistic}_ms" for name in LATENCIES for statistic in ("mean", "p50", "p90", "p99")),
)
"""Columns that are measured, and so predicted under the same name."""

_RENAMED: Final = {"version": "engine_version", "load": "load_type"}
ARRAYS: Final = frozenset({"requests", "steps"})
"""Fields of `Run` that are no cells."""


def column_of(field: str) -> str:
    """Return the column that holds a field of `Run`; its times are in milliseconds, by the end of the name."""
    in_ms = field.removesuffix("_s") + "_ms"
    return in_ms if in_ms in METRICS else _RENAMED.get(field, field)


NAMES: Final = tuple(column_of(field.name) for field in dataclasses.fields(Run) if field.name not in ARRAYS)
"""Every column of a case."""

_TEXTS = ("engine", "gpu", "model", "weight_dtype", "kv_dtype", "mode", "len_distribution", "arrival", "notes")
_WHOLES = (
    *("tp", "pp", "ep", "n_gpus", "max_num_seqs", "max_num_batched_tokens", "max_model_len", "num_requests"),
    *("kv_blocks", "kv_block_size", "inflight_cap"),
)
_NUMBERS = (
    *("input_len", "input_len_std", "output_len", "output_len_std", "load_value", "rate_cap_rps"),
    *("gpu_memory_utilization", "prefix_hit_share", "shared_prefix_tokens"),
)
_PATTERNS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(_TEXTS, (r".*\S.*", "a text")),
    "engine_version": (r".*\d+\.\d+.*", "a version such as 0.19"),
    "date": (r"\d{4}(-\d{2}){0,2}", "a date such as 2026-03-20"),
    "dp": (r"dpa|[1-9]\d*", "a whole number from 1, or dpa for attention data parallel"),
    "load_type": ("concurrency|rate|offline|batch", "concurrency, rate, offline or batch"),
    "prefix_caching": ("True|False", "True or False"),
    **dict.fromkeys(_WHOLES, (r"[1-9]\d*", "a whole number from 1")),
    **dict.fromkeys(_NUMBERS, (r"\d+(\.\d+)?|\d*\.\d+|inf", "a number from 0")),
}
ASSUMABLE: Final = tuple(_PATTERNS)
"""Columns by which the experiment of a case is made, so that it means something to assume them."""


def check_assumed(assumed: Mapping[str, str]) -> None:
    """Raise `UserError` for a column that no rule reads, and for a value that is not of its kind."""
    for column, value in assumed.items():
        if column not in _PATTERNS:
            known = f"; what may be assumed: {', '.join(ASSUMABLE)}"
            if column in NAMES:
                raise UserError(f"{column!r} changes no prediction{known}", file="--assume")
            remedy = did_you_mean(column, ASSUMABLE) or known
            raise UserError(f"{column!r} is no column of a case{remedy}", file="--assume")
        pattern, expected = _PATTERNS[column]
        if not re.fullmatch(pattern, value):
            raise UserError(f"expected {expected}, got {value!r}", file="--assume", path=column)


def check_where(where: Mapping[str, str], of_files: Collection[str]) -> None:
    """Raise `UserError` for a column that neither cases nor the files, which have *of_files*, can have."""
    known = dict.fromkeys((*NAMES, *of_files))
    for column in (name.removesuffix("~") for name in where):
        if column not in known:
            raise UserError(f"{column!r} is no column of a case{did_you_mean(column, known)}", file="--where")


def is_path(cell: str) -> bool:
    """Tell whether a cell names a place on somebody's machine."""
    return cell.startswith(("/", "~", "./", "../"))
