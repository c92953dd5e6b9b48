"""A run as comparisons need it: simulated now, or read from the folder that ``sim run --out`` wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.batch import Blocked
from sim.errors import SimError, UserError
from sim.experiment import experiment_of
from sim.metrics.rows import COLUMNS as STRIDE_COLUMNS
from sim.metrics.rows import StrideRows
from sim.simulate import ReadyPool, Result, ready_pools
from sim.yamlfile import parse_yaml

__all__ = ["COLUMNS", "Played", "from_folder", "from_result"]

Floats = NDArray[np.float64]
COLUMNS = ("arrival_s", "input_tokens", "output_tokens", "ttft_s", "tpot_s", "e2e_s", "queue_s")
"""Columns of the requests that are kept, named as in ``requests.parquet``."""
_TOO_LARGE = 1e15  # sums of squares of it stay finite
_RESULT, _MANIFEST, _REQUESTS, _STRIDES = "result.json", "manifest.json", "requests.parquet", "strides.parquet"


@dataclass(frozen=True, slots=True)
class Played:
    """One run.

    Attributes
    ----------
    values
        The result under its public keys.
    requests
        `COLUMNS` of the requests by name, `nan` where there is no such time.
    pools
        The deployment made ready, for what its operations cost; None: it cannot be, by *why_not*.
    """

    seed: int
    values: Mapping[str, Any]
    requests: Mapping[str, Floats]
    strides: StrideRows
    pools: Sequence[ReadyPool] | None
    why_not: str = ""

    def same_requests(self, other: Played) -> bool:
        """Return whether both served the same requests, so that each can be compared with its own twin."""
        names = ("arrival_s", "input_tokens", "output_tokens")
        return all(np.array_equal(self.requests[name], other.requests[name]) for name in names)


def from_result(result: Result) -> Played:
    """Return the run that *result* is of."""
    rows = result.requests
    columns = {name: np.asarray(getattr(rows, name), dtype=np.float64) for name in COLUMNS}
    return Played(result.experiment.seed, result.summary.as_dict(), columns, result.strides, result.pools)


def from_folder(folder: Path) -> tuple[str, Played]:
    """Return the name and the run that lie in *folder*.

    Raises
    ------
    UserError
        If a file that ``sim run --out`` writes is missing or is none.
    """
    values, manifest = _values(folder), _json(folder / _MANIFEST)
    columns = _columns(folder / _REQUESTS, COLUMNS)
    pools, why_not = _ready(manifest.get("experiment"), folder)
    seed = manifest.get("seed")
    if not isinstance(seed, int):
        raise UserError("has no seed", file=str(folder / _MANIFEST))
    return folder.resolve().name, Played(seed, values, columns, _strides(folder), pools, why_not)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _no_folder(path) from None
    except (OSError, ValueError, RecursionError) as problem:
        raise UserError(f"cannot be read: {problem}", file=str(path)) from None
    if not isinstance(content, dict):
        raise UserError("is not a JSON object", file=str(path))
    return content


def _values(folder: Path) -> dict[str, Any]:
    values = _json(folder / _RESULT)
    for key, value in values.items():
        if isinstance(value, int | float) and not abs(value) < _TOO_LARGE:
            raise UserError("is out of range", file=str(folder / _RESULT), path=key)
    return values


def _strides(folder: Path) -> StrideRows:
    columns = _columns(folder / _STRIDES, STRIDE_COLUMNS)
    file = str(folder / _STRIDES)
    for name, values in columns.items():
        wrong = ~(np.abs(values) < _TOO_LARGE) if name == "growth_s" else ~((values >= 0) & (values < _TOO_LARGE))
        if wrong.any():
            raise UserError(f"{values[wrong][0]:g} is out of range", file=file, path=name)
    if columns["blocked"].max(initial=0) >= len(Blocked):
        raise UserError("says of no such thing what was lacking", file=file, path="blocked")
    whole = {name: values.astype(np.int64) for name, values in columns.items() if not name.endswith("_s")}
    rows: dict[str, Any] = columns | whole
    return StrideRows(**rows, odd_gaps_s=np.empty(0), odd_gap_counts=np.empty(0, dtype=np.int64))


def _columns(path: Path, names: Sequence[str]) -> dict[str, Floats]:
    """Return columns of numbers, `nan` where there is none."""
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.read_table(path, columns=list(names))
        return {name: np.array(table[name].to_pandas(), dtype=np.float64) for name in names}
    except FileNotFoundError:
        raise _no_folder(path) from None
    except (ArrowException, OSError, ValueError, TypeError, LookupError) as problem:
        raise UserError(f"cannot be read: {problem}", file=str(path)) from None


def _no_folder(path: Path) -> UserError:
    return UserError(f"is no folder of `sim run --out`: it has no {path.name}", file=str(path.parent))


def _ready(written: Any, folder: Path) -> tuple[Sequence[ReadyPool] | None, str]:
    """Make the deployment of an experiment, as a manifest has it, ready again; or say why it cannot be."""
    try:
        return ready_pools(experiment_of(parse_yaml(json.dumps(written), str(folder / _MANIFEST)))), ""
    except SimError as problem:
        return None, f"the operations of {folder} are not known: {problem}"
