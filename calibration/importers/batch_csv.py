"""Static batches as Splitwise's profiles have them: milliseconds of the prefill and of each decode step."""

from __future__ import annotations

from collections.abc import Iterator

from calibration.reading import Content, Format, Record
from calibration.runs import Run, latency

__all__ = ["FORMATS"]

_COLUMNS = ("model", "hardware", "prompt_size", "batch_size", "output_tokens")
_MS = 1e-3


def _read(content: Content) -> Iterator[Run]:
    return (_run(row) for table in content.tables if table.has(*_COLUMNS) for row in table.records)


def _run(row: Record) -> Run:
    batch = row.whole("batch_size")
    return Run(
        model=row.text("model"),
        gpu=row.text("hardware"),
        tp=row.whole("tensor_parallel", "tp"),
        n_gpus=row.whole("tensor_parallel", "tp"),
        load="batch",
        load_value=batch,
        num_requests=batch,
        completed=batch,
        input_len=row.number("prompt_size"),
        output_len=row.number("output_tokens"),
        len_distribution="fixed",
        **latency("ttft", {"mean": row.number("prompt_time_ms", "prompt_ms")}, _MS),
        **latency("tpot", {"mean": row.number("token_time_ms_per_token", "token_ms")}, _MS),
        **latency("e2e", {"mean": row.number("e2e_time_ms")}, _MS),
    )


FORMATS = (Format("static batches", lambda content: any(table.has(*_COLUMNS) for table in content.tables), _read),)
