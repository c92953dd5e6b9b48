"""vLLM's start-up log: version, flags, and the memory that was found and taken on the first GPU.

"GB" of old versions is 2**30 bytes, too, as in the code that printed it, ``gpu_worker.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from calibration.reading import Content, Record, text_format
from calibration.reading.printed import argument
from calibration.runs import Run
from sim.units import GIB

__all__ = ["FORMATS"]

_SIGN = r"GPU KV cache size:|# (?:GPU|CUDA|cuda) blocks:|Available KV cache memory:"
_VERSION = re.compile(r"(?:API server version|LLM engine \(v?)[:\s]*v?(\d[\w.+-]*)")
_SIZES = {
    "weights_bytes": r"(?:[Mm]odel (?:loading took|weights take)|Loading model weights took) ([\d.]+) ?Gi?B",
    "activation_bytes": r"activation peak memory takes ([\d.]+) ?Gi?B",
    "non_torch_bytes": r"non_torch_memory takes ([\d.]+) ?Gi?B",
    "cuda_graph_bytes": r"Graph capturing finished in \d+ secs?, took ([\d.]+) ?Gi?B",
    "kv_bytes": r"(?:Available KV cache memory:|reserved for KV Cache is) ([\d.]+) ?Gi?B",
}
_COUNTS = {
    "kv_tokens": r"GPU KV cache size: ([\d,]+) tokens",
    "kv_blocks": r"# (?:GPU|CUDA|cuda) blocks: (\d+)",
    "max_num_batched_tokens": r"max_num_batched_tokens'?[=:] ?(\d+)",
}


def _runs(content: Content) -> Iterator[Run]:
    text = content.text
    version = _VERSION.search(text)
    sizes = Record({name: _found(pattern, text) for name, pattern in _SIZES.items()}, content.file)
    counts = Record({name: _found(pattern, text) for name, pattern in _COUNTS.items()}, content.file)
    yield Run(
        engine="vllm",
        version=version[1].rstrip(".,") if version else None,
        **_bytes(sizes),
        **counts.wholes({name: name for name in _COUNTS}),
        **_flags(text, content.file),
    )


def _bytes(sizes: Record) -> dict[str, Any]:
    gib = sizes.numbers({name: name for name in _SIZES})
    return {name: value * GIB for name, value in gib.items() if value is not None}


def _found(pattern: str, text: str) -> str | None:
    match = re.search(pattern, text)
    return match[1] if match else None


def _flags(text: str, file: str) -> dict[str, Any]:
    """Return flags as the engine printed them, its configuration before what was typed."""
    start = max(text.find("LLM engine ("), 0)
    names = {
        "model": ("model",),
        "dtype": ("quantization", "dtype"),
        "kv_dtype": ("kv_cache_dtype",),
        "tp": ("tensor_parallel_size",),
        "pp": ("pipeline_parallel_size",),
        "max_num_seqs": ("max_num_seqs",),
        "max_model_len": ("max_seq_len", "max_model_len"),
        "block_size": ("block_size",),
        "utilization": ("gpu_memory_utilization",),
        "prefix_caching": ("enable_prefix_caching",),
        "chunked_prefill": ("enable_chunked_prefill", "chunked_prefill_enabled"),
    }
    given = Record({key: argument(text[start:], *each) or argument(text, *each) for key, each in names.items()}, file)
    kv_dtype = given.text("kv_dtype")
    return {
        "model": given.text("model"),
        "weight_dtype": (given.text("dtype") or "").removeprefix("torch.") or None,
        "kv_dtype": None if kv_dtype == "auto" else kv_dtype,
        "max_num_seqs": given.whole("max_num_seqs"),
        "max_model_len": given.whole("max_model_len"),
        "kv_block_size": given.whole("block_size"),
        "gpu_memory_utilization": given.number("utilization"),
        "prefix_caching": given.flag("prefix_caching"),
        "chunked_prefill": given.flag("chunked_prefill"),
        "tp": given.whole("tp"),
        "pp": given.whole("pp"),
    }


FORMATS = (text_format("vLLM start-up log", _SIGN, _runs),)
