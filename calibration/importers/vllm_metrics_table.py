"""A table of runs: client latencies in milliseconds beside vLLM's own metrics, such as prefix hits and KV use.

The load is in no column, so it stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

from calibration.importers.vllm_serve import latencies_of
from calibration.reading import Record, Table, table_format
from calibration.runs import Run, latency

__all__ = ["FORMATS"]

_PER_CENT = 1e-2


def _runs(table: Table) -> Iterator[Run]:
    return (_run(row) for row in table.records)


def _run(row: Record) -> Run:
    hits, accepted = row.number("prefix_hit_rate"), row.number("spec_accept_rate")
    return Run(
        case_id=row.text("label"),
        engine="vllm",
        mode="agg+spec" if accepted is not None else None,
        completed=row.whole("completed"),
        req_s=row.number("req_tput"),
        output_tok_s=row.number("out_tput"),
        total_tok_s=row.number("tot_tput"),
        prefix_hit_share=None if hits is None else hits * _PER_CENT,
        **latencies_of(row),
        **latency("e2e", {"mean": row.number("mean_e2e_ms")}, 1e-3),
    )


FORMATS = (
    table_format("table of vLLM runs with server metrics", ("label", "mean_e2e_ms", "out_tput", "running_mean"), _runs),
)
