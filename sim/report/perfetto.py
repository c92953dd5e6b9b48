"""A trace for ui.perfetto.dev: iterations by replica, phases of requests, counters of KV cache and queue.

The format is the Chrome trace event format: complete events (``X``) for strides, nested asynchronous events
(``b``, ``e``) for requests, counters (``C``). Perfetto refuses complete events that overlap on a track, so
times are whole nanoseconds and a stride ends no later than the next one starts.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.metrics.rows import Blocked, RequestRows, StrideRows
from sim.metrics.transfers import TransferRows

__all__ = ["perfetto_trace"]

Event = dict[str, Any]
Ints = NDArray[np.int64]

_TRACK = 1
_PHASES = ("queue", "prefill", "decode")
_MOVED_PHASES = ("transfer", "decode")


def perfetto_trace(
    requests: RequestRows,
    strides: StrideRows,
    transfers: TransferRows | None = None,
    *,
    most_requests: int = 5_000,
    most_strides: int = 20_000,
) -> str:
    """Return the trace as JSON text.

    It holds the first *most_requests* admitted requests and the first *most_strides* strides, so that the
    trace of a long run can still be opened; ``otherData`` states what it holds. A request whose prompt was computed by
    another replica than its answer is shown on both.
    """
    admitted = np.flatnonzero(~np.isnan(requests.admitted_s))
    shown = admitted[np.argsort(requests.arrival_s[admitted], kind="stable")][:most_requests]
    first = np.argsort(strides.start_s, kind="stable")[:most_strides]
    events = [*_names(strides), *_requests(requests, transfers, shown), *_replicas(strides, first)]
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    extent = {
        "requests": f"first {len(shown):,} of {len(requests.request_id):,}",
        "strides": f"first {len(first):,} of {len(strides.start_s):,}",
    }
    return f'{{"displayTimeUnit":"ms","otherData":{json.dumps(extent)},"traceEvents":[\n{lines}\n]}}\n'


def _ns(time_s: NDArray[np.float64]) -> Ints:
    return np.rint(time_s * 1e9).astype(np.int64)


def _process(replica: int) -> int:
    return replica + 1  # process 0 is the idle process to Perfetto


def _names(strides: StrideRows) -> Iterator[Event]:
    for replica in np.unique(strides.replica).tolist():
        process = {"ph": "M", "pid": _process(replica), "tid": _TRACK}
        yield {"name": "process_name", **process, "args": {"name": f"replica {replica}"}}
        yield {"name": "thread_name", **process, "args": {"name": "iterations"}}


def _requests(requests: RequestRows, transfers: TransferRows | None, shown: Ints) -> Iterator[Event]:
    moved = {} if transfers is None else {index: row for row, index in enumerate(transfers.request.tolist())}
    for index in shown.tolist():
        begins_s = (requests.arrival_s[index], requests.admitted_s[index])
        end_s, replica = requests.last_token_s[index], int(requests.replica[index])
        if transfers is None or index not in moved:
            yield from _spans(requests, index, replica, _PHASES, (*begins_s, requests.first_token_s[index], end_s))
            continue
        row = moved[index]
        prefilled_s, arrive_s = transfers.prefilled_s[row], transfers.arrive_s[row]
        yield from _spans(
            requests, index, int(transfers.prefill_replica[row]), _PHASES[:2], (*begins_s, prefilled_s), "prompt"
        )
        yield from _spans(requests, index, replica, _MOVED_PHASES, (prefilled_s, arrive_s, max(arrive_s, end_s)))


def _spans(
    requests: RequestRows,
    index: int,
    replica: int,
    phases: tuple[str, ...],
    moments_s: tuple[float, ...],
    part: str = "",
) -> Iterator[Event]:
    """Yield the *phases* of a request on one replica, as far as their *moments_s* are known."""
    known_s = np.array([moment_s for moment_s in moments_s if not np.isnan(moment_s)])
    times_us = (_ns(known_s) / 1e3).tolist()
    name = f"request {requests.request_id[index]}"
    event = {"cat": "request", "id": f"{index} {part}".strip(), "pid": _process(replica), "tid": _TRACK}
    yield {"ph": "b", "name": name, **event, "ts": times_us[0], "args": _lengths(requests, index)}
    for phase, (begin_us, end_us) in zip(phases, itertools.pairwise(times_us), strict=False):
        yield {"ph": "b", "name": phase, **event, "ts": begin_us}
        yield {"ph": "e", "name": phase, **event, "ts": end_us}
    yield {"ph": "e", "name": name, **event, "ts": times_us[-1]}


def _lengths(requests: RequestRows, index: int) -> dict[str, int]:
    names = ("input_tokens", "output_tokens", "cached_tokens", "preemptions")
    return {name: int(getattr(requests, name)[index]) for name in names}


def _replicas(strides: StrideRows, first: Ints) -> Iterator[Event]:
    for replica in np.unique(strides.replica[first]).tolist():
        mine = first[strides.replica[first] == replica]
        begin_ns = _ns(strides.start_s[mine])
        end_ns = _ns((strides.start_s + strides.duration_s)[mine])
        end_ns[:-1] = np.minimum(end_ns[:-1], begin_ns[1:])
        for index, begin, end in zip(mine.tolist(), begin_ns.tolist(), end_ns.tolist(), strict=True):
            track = {"pid": _process(replica), "tid": _TRACK, "ts": begin / 1e3}
            work = {"name": _kind(strides, index), "dur": (end - begin) / 1e3, "args": _work(strides, index)}
            yield {"ph": "X", **track, **work}
            yield {"ph": "C", "name": "KV blocks", **track, "args": {"in use": int(strides.kv_blocks[index])}}
            yield {"ph": "C", "name": "requests", **track, "args": _queue(strides, index)}


def _kind(strides: StrideRows, index: int) -> str:
    parts = [("prefill", strides.chunks[index]), ("decode", strides.decodes[index])]
    return " + ".join(name for name, sequences in parts if sequences) or "padding"


def _work(strides: StrideRows, index: int) -> dict[str, Any]:
    names = ("iterations", "decodes", "decode_context_tokens", "chunks", "prefill_tokens", "preempted")
    return {
        **{name: int(getattr(strides, name)[index]) for name in names},
        "blocked": Blocked(strides.blocked[index]).name.lower(),
    }


def _queue(strides: StrideRows, index: int) -> dict[str, int]:
    return {"running": int(strides.running[index]), "waiting": int(strides.waiting[index])}
