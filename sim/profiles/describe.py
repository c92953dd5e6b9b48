"""A model in numbers, as ``profiles show --format json`` prints it."""

from __future__ import annotations

from typing import Any

from sim.profiles.model import Model

__all__ = ["describe"]

NOMINAL_BYTES = {"fp16": 2.0, "int8": 1.0, "int4": 0.5}


def describe(model: Model) -> dict[str, Any]:
    """Return the counts of a model: parameters as numbers, not billions, memory in bytes.

    `kv_bytes_per_token` is of the layers that keep all tokens, in 16 bit; `windowed_kv_bytes_per_token` of those that
    keep only a window; `kv_dtype` is the type that the checkpoint asks for. `nominal_weight_bytes` is what articles
    print, all parameters times the nominal width; `weight_bytes` has scales, and parts that stay in 16 bit.
    """
    return {
        "name": model.name,
        "architecture": model.architecture,
        "params": model.params,
        "active_params": model.active_params,
        "params_by_part": model.params_by_component,
        "vision_params": model.vision_params,
        "mtp_params": model.mtp_params,
        "weight_bytes": model.weight_bytes(),
        "nominal_weight_bytes": {dtype: model.params * size for dtype, size in NOMINAL_BYTES.items()},
        "dtype": model.dtype,
        "quantization": model.checkpoint.model_dump(exclude_none=True),
        "kv_dtype": model.checkpoint.kv_cache or model.dtype,
        "kv_bytes_per_token": model.kv_bytes_per_token(),
        "windowed_kv_bytes_per_token": model.kv_bytes_per_token(windowed=True),
        "windows": list(model.windows),
        "index_bytes_per_token": model.index_bytes_per_token,
        "state_bytes_per_sequence": model.state_bytes_per_sequence,
        "layers": model.num_layers,
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "max_position_embeddings": model.max_position_embeddings,
        "tied_embeddings": model.tied_embeddings,
        "sources": model.sources,
        "notes": model.notes,
    }
