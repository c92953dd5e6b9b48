"""``llama-batched-bench``: all prompts of a static batch, then all answers; a Markdown table or JSON lines, in seconds.

TTFT is the time of the whole prefill, since no sequence decodes before. Source: llama.cpp's ``tools/batched-bench``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from calibration.reading import Content, Format, Record, record_format
from calibration.runs import Run, latency

__all__ = ["FORMATS"]

_COLUMNS = ("PP", "TG", "B", "N_KV", "T_PP s", "T_TG s", "T s", "S t/s")
_KEYS = ("pp", "tg", "pl", "n_kv", "t_pp", "t_tg", "t", "speed")
_MODEL = re.compile(r"^Model: https://huggingface\.co/(\S+)")
_SHARED = re.compile(r"\bis_pp_shared = (\d)")


def _of_markdown(content: Content) -> Iterator[Run]:
    for table in content.markdown_tables:
        if table.has(*_COLUMNS) and table.lines:
            above = content.lines[: table.lines[0] - 1]
            model, shared = _last(_MODEL, above), _last(_SHARED, above) == "1"
            yield from (_run(row, _COLUMNS, model, shared) for row in table.records)


def _last(pattern: re.Pattern[str], lines: list[str]) -> str | None:
    return next((match[1] for line in reversed(lines) if (match := pattern.search(line))), None)


def _of_object(record: Record) -> Iterator[Run]:
    yield _run(record, _KEYS, None, bool(record.whole("is_pp_shared")))


def _run(row: Record, names: tuple[str, ...], model: str | None, shared: bool) -> Run:
    prompt, generated, batch, _, prefill_s, decode_s, total_s, tok_s = (row.number(name) for name in names)
    if not (batch and total_s and generated is not None):
        raise row.error(names[2], "expected a batch, its tokens and its time")
    return Run(
        engine="llama.cpp",
        model=model,
        load="batch",
        load_value=batch,
        num_requests=int(batch),
        completed=int(batch),
        input_len=prompt,
        output_len=generated,
        len_distribution="fixed",
        shared_prefix_tokens=prompt if shared else None,
        duration_s=total_s,
        req_s=batch / total_s,
        output_tok_s=batch * generated / total_s,
        total_tok_s=tok_s,
        **latency("ttft", {"mean": prefill_s}),
        **latency("tpot", {"mean": decode_s / generated if decode_s and generated else None}),
        **latency("e2e", {"mean": total_s}),
    )


FORMATS = (
    Format(
        "llama-batched-bench, Markdown",
        lambda content: any(table.has(*_COLUMNS) for table in content.markdown_tables),
        _of_markdown,
    ),
    record_format("llama-batched-bench", lambda record: record.has(*_KEYS), _of_object),
)
