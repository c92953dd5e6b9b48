"""A folder with all about a run; each file appears whole or not at all, and equal runs give equal bytes."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.errors import UserError
from sim.metrics.instances import InstanceRows, InstanceState
from sim.metrics.rows import COLUMNS, RequestRows, StrideRows
from sim.metrics.summary import Summary
from sim.metrics.timeline import timeline_of
from sim.metrics.transfers import TransferRows
from sim.paths import is_file
from sim.report.json import to_json
from sim.report.perfetto import perfetto_trace
from sim.request import Status
from sim.simulate.inputs import file_hash
from sim.wholefile import clear_leftovers, write_whole

__all__ = ["manifest_of", "write_files", "write_run", "writable_folder"]

_PACKAGES = ("servecast", "numpy", "pyarrow", "pydantic", "simpy")
_STATUS = {Status.COMPLETED: "completed", Status.REJECTED: "rejected"}  # any other has failed
_REQUEST_COLUMNS = (
    *("request_id", "arrival_s", "input_tokens", "output_tokens", "cached_tokens", "replica"),
    *("ttft_s", "tpot_s", "e2e_s", "queue_s", "preemptions"),
)
_RETRY_COLUMNS = ("retries", "lost_tokens")


def writable_folder(path: str | Path) -> Path:
    """Return *path* as a folder that exists and takes files; raise a `UserError` if it cannot be.

    To be asked before a run, so that no result is lost for want of a place.
    """
    if not str(path):
        raise UserError("the name of the folder to write into is empty")
    folder = Path(path)
    probe = folder / f".probe.servecast-{os.getpid()}"
    if is_file(folder):
        raise UserError("is a file, a folder is needed", file=str(path))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
        clear_leftovers(folder)
    except OSError as error:
        raise _unwritable(folder, error) from error
    return folder


def write_run(
    folder: Path,
    summary: Summary,
    requests: RequestRows,
    strides: StrideRows,
    *,
    kv_blocks: Sequence[float],
    manifest: Mapping[str, Any],
    lives: InstanceRows | None = None,
) -> list[Path]:
    """Write all files of a run into *folder*, which exists, and return their paths.

    *kv_blocks* are those of each replica by its number, *manifest* what `manifest_of` returned. With the
    *lives* of replicas that come and go there is one file more. Where KV moves between replicas there are two more
    columns of requests, and a table of transfers.
    """
    transfers = summary.transfers
    timeline = timeline_of(requests, strides, kv_blocks, lives)
    texts = {
        "result.json": to_json(summary.as_dict()) + "\n",
        "trace.perfetto.json": perfetto_trace(requests, strides, transfers),
        "manifest.json": to_json(manifest) + "\n",
    }
    tables = {
        "requests.parquet": _request_columns(requests) | _moved_columns(len(requests.arrival_s), transfers),
        "strides.parquet": _columns(strides, COLUMNS),
        "timeline.parquet": _columns(timeline, timeline.__dataclass_fields__),
    }
    if lives is not None:
        tables["instances.parquet"] = _instance_columns(lives)
    if transfers is not None:
        tables["transfers.parquet"] = _columns(transfers, transfers.__dataclass_fields__)
    contents = {name: _parquet(columns) for name, columns in tables.items()}
    return write_files(folder, contents | {name: text.encode() for name, text in texts.items()})


def write_files(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write files by their names into *folder*, each whole or not at all, and return their paths."""
    for name, content in contents.items():
        _replace(folder / name, content)
    return [folder / name for name in contents]


def manifest_of(seed: int, inputs: Mapping[str, Path]) -> dict[str, Any]:
    """Return what it takes to repeat a run: versions, the *seed*, and a SHA-256 of each of its *inputs*."""
    hashes = {name: file_hash(path) for name, path in sorted(inputs.items())}
    return {
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "seed": seed,
        "profiles": hashes,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None  # run from a checkout that is not installed


def _request_columns(requests: RequestRows) -> dict[str, Any]:
    """Return the public columns: output tokens as asked for, and a status in words."""
    return {
        **_columns(requests, _REQUEST_COLUMNS),
        **(_columns(requests, _RETRY_COLUMNS) if requests.lost_tokens.any() or requests.retries.any() else {}),
        "status": [_STATUS.get(Status(code), "failed") for code in requests.status.tolist()],
        "class": requests.traffic_class,
        "tenant": requests.tenant,
    }


def _instance_columns(lives: InstanceRows) -> dict[str, Any]:
    state = [InstanceState(code).name.lower() for code in lives.state.tolist()]
    return _columns(lives, ("replica", "from_s", "to_s")) | {"state": state}


def _moved_columns(count: int, transfers: TransferRows | None) -> dict[str, Any]:
    """Return where prompts were computed, and what their KV took [s]; `nan` where the replica did it alone."""
    if transfers is None:
        return {}
    replica, transfer_s = np.full(count, np.nan), np.full(count, np.nan)
    replica[transfers.request] = transfers.prefill_replica
    transfer_s[transfers.request] = transfers.exposed_s
    return {"prefill_replica": _whole(replica), "transfer_s": transfer_s}


def _whole(numbers: NDArray[np.float64]) -> list[int | None]:
    return [None if math.isnan(number) else int(number) for number in numbers.tolist()]


def _columns(rows: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(rows, name)) is not None}


def _parquet(columns: Mapping[str, Any]) -> bytes:
    """Return *columns* as a Parquet file, with `nan` as null."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _replace(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> UserError:
    return UserError(f"cannot write: {error.strerror or error}", file=str(path))
