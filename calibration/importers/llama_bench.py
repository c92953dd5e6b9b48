"""``llama-bench``: Markdown, CSV, JSON and JSON lines; one sequence, so that rates are also times.

A prompt row (``pp512``) is a prefill of so many tokens: no answer, its rate counts prompt tokens. A generation row
(``tg128``) decodes so many tokens after a context, whose depth stands for the input. ``@ d4096`` is that depth. Source:
llama.cpp's ``tools/llama-bench``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from calibration.reading import Content, Format, Record
from calibration.runs import Run, latency

__all__ = ["FORMATS"]

_TEST = re.compile(r"(?:pp(\d+))?\+?(?:tg(\d+))?(?: @ d(\d+))?")
_SIZE = {"GiB": 2**30, "MiB": 2**20}
_BUILD = re.compile(r"^build: \w+ \((\d+)\)", re.MULTILINE)
_DEVICE = re.compile(r"^\s*(?:ggml_\w+: 0 = |Device 0: )([^(,]+(?:\(RADV \w+\))?)", re.MULTILINE)
_DTYPE = re.compile(r"\b(?:I?Q\d\w*|B?F16|F32|MXFP4)\b")


def _records(content: Content) -> Iterator[Record]:
    yield from (record for record in content.objects if record.has("n_prompt", "n_gen", "avg_ts"))
    tables = (table for table in content.tables if table.has("n_prompt", "n_gen", "avg_ts"))
    yield from (row for table in tables for row in table.records)


def _of_fields(record: Record) -> Run:
    depth = record.number("n_depth", "starting_depth") or 0.0
    number = record.text("build_number", "build_commit")
    return _run(
        (record.number("n_prompt") or 0.0, record.number("n_gen") or 0.0, depth),
        record.number("avg_ts"),
        version=number,
        model=record.text("model_filename", "model_type", "model"),
        gpu=record.text("gpu_info"),
        weights_bytes=record.number("model_size"),
        weight_dtype=_dtype(record.text("model_type", "model")),
        kv_dtype=record.text("type_k"),
        max_num_batched_tokens=record.whole("n_ubatch"),
    )


def _of_markdown(content: Content) -> Iterator[Run]:
    builds, device = _BUILD.findall(content.text), _DEVICE.search(content.text)
    for table in content.markdown_tables:
        for row in table.records if table.has("model", "test", "t/s") else ():
            yield _run(
                _tests(row),
                Record({"t/s": (row.text("t/s") or "").partition("±")[0].strip()}, row.file, row.line).number("t/s"),
                version=builds[0] if len(set(builds)) == 1 else None,
                model=row.text("model"),
                gpu=device[1].strip() if device else None,
                weights_bytes=_size_bytes(row.text("size")),
                weight_dtype=_dtype(row.text("model")),
                kv_dtype=row.text("type_k"),
                max_num_batched_tokens=row.whole("n_ubatch"),
            )


def _tests(row: Record) -> tuple[float, float, float]:
    """Return prompt, generated and cached tokens of a test such as ``pp2048 @ d4096``."""
    match = _TEST.fullmatch(row.text("test") or "")
    if match is None or not any(match.groups()):
        raise row.error("test", f"unknown test {row.text('test')!r}")
    prompt, generated, depth = (float(group or 0) for group in match.groups())
    return prompt, generated, depth


def _run(tokens: tuple[float, float, float], tok_s: float | None, **stated: Any) -> Run:
    prompt, generated, depth = tokens
    common = {"engine": "llama.cpp", "load": "batch", "load_value": 1.0, "len_distribution": "fixed", **stated}
    seconds = {"mean": (prompt + generated) / tok_s} if tok_s else {}
    if not generated:
        done = {"total_tok_s": tok_s, **latency("ttft", seconds)}
        return Run(input_len=prompt, output_len=0.0, context_len=depth, **done, **common)
    if not prompt:
        per_token = {"mean": 1 / tok_s} if tok_s else {}
        return Run(input_len=depth, output_len=generated, output_tok_s=tok_s, **latency("tpot", per_token), **common)
    done = {"total_tok_s": tok_s, **latency("e2e", seconds)}
    return Run(input_len=prompt, output_len=generated, context_len=depth, **done, **common)


def _size_bytes(text: str | None) -> float | None:
    number, _, unit = (text or "").partition(" ")
    return float(number) * _SIZE[unit] if unit in _SIZE and number.replace(".", "", 1).isdigit() else None


def _dtype(model: str | None) -> str | None:
    match = _DTYPE.search(model or "")
    return match[0] if match else None


FORMATS = (
    Format(
        "llama-bench",
        lambda content: next(_records(content), None) is not None,
        lambda content: map(_of_fields, _records(content)),
    ),
    Format(
        "llama-bench, Markdown",
        lambda content: any(table.has("model", "test", "t/s") for table in content.markdown_tables),
        _of_markdown,
    ),
)
