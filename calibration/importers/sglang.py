"""sglang's ``bench_serving``: one JSON object a line, with the whole server configuration.

``request_rate`` is the literal ``Infinity``; "random" lengths average about half of what was asked for, so the means
come from the totals. Source: sglang's ``python/sglang/bench_serving.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from calibration.importers.vllm_serve import run_of
from calibration.reading import Record, record_format
from calibration.runs import Run

__all__ = ["FORMATS"]


def _runs(record: Record) -> Iterator[Run]:
    server, accepted = record.child("server_info"), record.number("accept_length")
    speculative = (accepted or 0) > 1 or server.text("speculative_algorithm") is not None
    yield replace(
        run_of(record),
        case_id=record.text("tag"),
        engine=record.text("backend"),
        mode="agg+spec" if speculative else None,
        **(_server(server) if server.data else {}),
    )


def _server(server: Record) -> dict[str, Any]:
    tp, pp = server.whole("tp_size"), server.whole("pp_size")
    no_cache = server.flag("disable_radix_cache")
    return {
        "version": server.text("version"),
        "model": server.text("model_path"),
        "tp": tp,
        "pp": pp,
        "dp": server.whole("dp_size"),
        "ep": server.whole("ep_size"),
        "n_gpus": None if tp is None else tp * (pp or 1),
        "weight_dtype": server.text("quantization") or _stated(server.text("dtype")),
        "kv_dtype": _stated(server.text("kv_cache_dtype")),
        "max_num_seqs": server.whole("max_running_requests"),
        "max_model_len": server.whole("context_length"),
        "gpu_memory_utilization": server.number("mem_fraction_static"),
        "prefix_caching": None if no_cache is None else not no_cache,
    }


def _stated(dtype: str | None) -> str | None:
    return None if dtype == "auto" else dtype


FORMATS = (
    record_format(
        "sglang bench_serving",
        lambda record: record.has("completed", "request_throughput", "total_output_tokens_retokenized"),
        _runs,
    ),
)
