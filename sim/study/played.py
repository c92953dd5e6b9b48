"""A run as comparisons need it: simulated now, or read from the folder that ``sim run --out`` wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.errors import SimError, UserError
from sim.experiment import experiment_of
from sim.metrics.rows import StrideRows
from sim.simulate import ReadyPool, Result, ready_pools
from sim.yamlfile import parse_yaml

__all__ = ["COLUMNS", "Played", "from_folder", "from_result"]

Floats = NDArray[np.float64]
COLUMNS = ("arrival_s", "input_tokens", "output_tokens", "ttft_s", "tpot_s", "e2e_s", "queue_s")
"""Columns of the requests that are kept, named as in ``requests.parquet``."""
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
    from pyarrow import ArrowInvalid, parquet

    try:
        values = json.loads((folder / _RESULT).read_text(encoding="utf-8"))
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        requests = parquet.read_table(folder / _REQUESTS, columns=list(COLUMNS))
        strides = parquet.read_table(folder / _STRIDES)
    except FileNotFoundError as problem:
        missing = Path(problem.filename or str(problem)).name
        raise UserError(f"is no folder of `sim run --out`: it has no {missing}", file=str(folder)) from None
    except (OSError, ValueError, ArrowInvalid) as problem:
        raise UserError(f"cannot be read: {problem}", file=str(folder)) from None
    columns = {name: _floats(requests[name]) for name in COLUMNS}
    rows = StrideRows(
        **{name: strides[name].to_numpy() for name in strides.column_names},
        odd_gaps_s=np.empty(0),
        odd_gap_counts=np.empty(0, dtype=np.int64),
    )
    written = manifest["experiment"]
    pools, why_not = _ready(written, folder)
    return folder.resolve().name, Played(manifest["seed"], values, columns, rows, pools, why_not)


def _floats(column: Any) -> Floats:
    values: Floats = np.array(column.to_pandas(), dtype=np.float64)
    return values


def _ready(written: Mapping[str, Any], folder: Path) -> tuple[Sequence[ReadyPool] | None, str]:
    """Make the deployment of an experiment, as a manifest has it, ready again; or say why it cannot be."""
    try:
        return ready_pools(experiment_of(parse_yaml(json.dumps(written), str(folder / _MANIFEST)))), ""
    except SimError as problem:
        return None, f"the operations of {folder} are not known: {problem}"
