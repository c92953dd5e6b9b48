"""Fitted constants as the text of a calibrated profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from sim.profiles.calibrated import Constant, Fit

__all__ = ["TABLES", "fixed", "lines_of", "table_lines"]

TABLES = ("gemm", "decode", "prefill", "latent_decode", "latent_prefill", "experts", "all_reduce")


def table_lines(table: str, rows: Mapping[str | int, BaseModel]) -> Iterator[str]:
    """Yield the YAML of one table of constants."""
    yield f"{table}:\n"
    for key, constants in rows.items():
        yield f"  {key}:\n" if "@" not in str(key) else f'  "{key}":\n'
        yield from lines_of(constants, "    ")


def lines_of(constants: BaseModel, indent: str) -> Iterator[str]:
    """Yield a line for each constant, and those of their fit."""
    for name in type(constants).model_fields:
        value = getattr(constants, name)
        if isinstance(value, Constant):
            low, high = value.bounds
            digits = ".0f" if name.endswith("_bytes") else ".4g"
            numbers = f"value: {value.value:{digits}}, stderr: {value.stderr:.2g}, bounds: [{low:g}, {high:g}]"
            yield f"{indent}{name}: {{{numbers}, status: {value.status}}}\n"
        elif isinstance(value, Fit):
            yield from (f"{indent}{line}" for line in _fit_lines(value))


def _fit_lines(summary: Fit) -> Iterator[str]:
    yield "fit:\n"
    yield f'  source: "{summary.source}"\n'
    if summary.sha256:
        yield f"  sha256: {summary.sha256}\n"
        yield f"  rows: {summary.rows}\n"
        yield f"  excluded: {summary.excluded}\n"
        yield f"  median_error: {summary.median_error:.4f}\n"
        yield f"  p90_error: {summary.p90_error:.4f}\n"
    if summary.correlations:
        yield "  correlations:\n"
        for name, row in summary.correlations.items():
            pairs = ", ".join(f"{other}: {value:g}" for other, value in row.items())
            yield f"    {name}: {{{pairs}}}\n"
    if summary.untold:
        yield f"  untold: [{', '.join(summary.untold)}]\n"


def fixed(constants: BaseModel, source: str) -> dict[str, Any]:
    """Return an update that makes *constants* fixed ones, with the *source* from which they are borrowed."""
    values = {name: getattr(constants, name) for name in type(constants).model_fields}
    kept = {
        name: Constant(value=value.value, bounds=(value.value, value.value), status="fixed")
        for name, value in values.items()
        if isinstance(value, Constant)
    }
    return {**kept, "fit": Fit(source=source)}
