"""Rows of a run, written by hand."""

import numpy as np

from sim.metrics.context import RunContext
from sim.metrics.pools import PoolContext
from sim.metrics.rows import COLUMNS, RequestRows
from sim.metrics.stride_log import StrideLog, packed
from sim.request import Status

NEVER = float("nan")
_STRIDE = dict.fromkeys(COLUMNS, 0)


def requests_of(*rows):
    """Make one request a row: (arrival, admitted, first token, last token, output tokens, changes to the rest)."""
    count = len(rows)
    columns = {
        "request_id": [str(index) for index in range(count)],
        **{
            name: np.array([row[place] for row in rows], dtype=np.float64)
            for place, name in enumerate(("arrival_s", "admitted_s", "first_token_s", "last_token_s"))
        },
        **dict.fromkeys(
            ("cached_tokens", "replica", "preemptions", "retries", "lost_tokens"), np.zeros(count, dtype=np.int64)
        ),
        "discarded_s": np.zeros(count),
        "input_tokens": np.full(count, 100, dtype=np.int64),
        "output_tokens": np.array([row[4] for row in rows], dtype=np.int64),
        "emitted_tokens": np.array([row[4] for row in rows], dtype=np.int64),
        "status": np.full(count, Status.COMPLETED, dtype=np.int64),
        **{name: [""] * count for name in ("reasons", "traffic_class", "tenant")},
    }
    for index, row in enumerate(rows):
        for name, value in (row[5] if len(row) > 5 else {}).items():
            columns[name] = columns[name].copy()
            columns[name][index] = value
    return RequestRows(**columns)


def completed(arrival_s, queue_s, ttft_s, e2e_s, output_tokens=10):
    """Make completed requests from whole columns."""
    zeros = np.zeros(len(arrival_s), dtype=np.int64)
    return RequestRows(
        request_id=[str(index) for index in range(len(arrival_s))],
        arrival_s=arrival_s,
        admitted_s=arrival_s + queue_s,
        first_token_s=arrival_s + ttft_s,
        last_token_s=arrival_s + e2e_s,
        input_tokens=zeros + 100,
        output_tokens=zeros + output_tokens,
        emitted_tokens=zeros + output_tokens,
        cached_tokens=zeros,
        replica=zeros,
        preemptions=zeros,
        retries=zeros,
        lost_tokens=zeros,
        discarded_s=np.zeros(len(arrival_s)),
        status=zeros + Status.COMPLETED,
        **{name: [""] * len(arrival_s) for name in ("reasons", "traffic_class", "tenant")},
    )


def strides_of(*rows, odd_gaps=()):
    """Make strides from dictionaries; what they leave out is 0, but one iteration, and a gap for every decode."""
    log = StrideLog()
    for row in rows:
        decodes, iterations = row.get("decodes", 0), row.get("iterations", 1)
        implied = {"iterations": 1, "steady_gaps": decodes, "emitted": decodes * iterations, "together": iterations}
        cells = _STRIDE | implied | row
        log.cells += packed(*cells.values())
    for gap_s, count in odd_gaps:
        log.odd_gap(gap_s, count)
    return log.rows()


def two_answers():
    """Serve two requests of 3 and 4 tokens on one replica while a third is rejected; all times are exact in binary.

    ========  ==========  ==========================  =====================
    start     iterations  what                        ends at
    ========  ==========  ==========================  =====================
    1.0       0.5         prompt of 0                 1.5
    1.5       0.5         decode 0, prompt of 1       2.0
    2.0       0.25        decode 0 and 1, 0 is done   2.25
    2.25      0.125 0.25  decode 1, twice             2.375 2.625
    ========  ==========  ==========================  =====================
    """
    requests = requests_of(
        (1.0, 1.0, 1.5, 2.25, 3),
        (1.25, 1.5, 2.0, 2.625, 4, {"input_tokens": 50, "cached_tokens": 32, "preemptions": 1}),
        (2.0, NEVER, NEVER, NEVER, 9, {"status": Status.REJECTED, "emitted_tokens": 0, "reasons": "9 blocks"}),
    )
    strides = strides_of(
        {"start_s": 1.0, "first_s": 0.5, "chunks": 1, "running": 1, "kv_blocks": 7},
        {"start_s": 1.5, "first_s": 0.5, "chunks": 1, "decodes": 1, "running": 2, "kv_blocks": 11},
        {"start_s": 2.0, "first_s": 0.25, "decodes": 2, "running": 2, "kv_blocks": 11},
        {
            "start_s": 2.25,
            "first_s": 0.125,
            "growth_s": 0.125,
            "iterations": 2,
            "decodes": 1,
            "running": 1,
            "kv_blocks": 4,
        },
    )
    return requests, strides


def context_of(**changes):
    """Return the context of a run on one pool: a replica of two GPUs and 20 blocks, but for *changes*."""
    written = {"num_gpus": 2, "replicas": 1, "kv_blocks": 20} | changes
    pool = {name: value for name, value in written.items() if name in PoolContext.__dataclass_fields__}
    return RunContext((PoolContext(**pool),), **{name: written[name] for name in written.keys() - pool.keys()})
