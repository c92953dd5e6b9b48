"""How large the rotary tables are that an engine builds beside the weights.

vLLM keeps one table of cosines and sines a different rotary embedding, positions x rotary width, in the model's type
(`vllm/model_executor/layers/rotary_embedding`). For long contexts it is not small: 2.5 GiB a rank for Llama-4-Scout.
"""

from __future__ import annotations

from sim.profiles.huggingface.config import Config

__all__ = ["table_elements"]

MROPE_ROOM = 4
"""`MRotaryEmbedding` makes its table four times as long as the context."""


def table_elements(config: Config, head_dim: int, positions: int, *, local: bool = False) -> int:
    """Return the entries of all tables.

    Parameters
    ----------
    config
        The language model's config: `rope_scaling` or, since transformers 5, `rope_parameters`, also one a layer type.
    head_dim
        Width of a head, or of its rotary share where the config names that.
    positions
        `max_position_embeddings`.
    local
        The windowed layers have a second, unscaled table (Gemma 3).
    """
    scaling = config.part("rope_parameters", "rope_scaling") or Config({}, config.file)
    by_layer = [part for key in ("full_attention", "sliding_attention") if (part := scaling.part(key))]
    if by_layer:
        return sum(_table(part, config, head_dim, positions) for part in by_layer)
    unscaled = _table(Config({}, config.file), config, head_dim, positions) if local else 0
    return _table(scaling, config, head_dim, positions) + unscaled


def _table(scaling: Config, config: Config, head_dim: int, positions: int) -> int:
    share = scaling.number("partial_rotary_factor", config.number("partial_rotary_factor", 1.0))
    return round(_positions(scaling, config, positions) * config.whole("rotary_dim", default=int(head_dim * share)))


def _positions(scaling: Config, config: Config, positions: int) -> float:
    kind, factor = scaling.text("rope_type", scaling.text("type", "default")), scaling.number("factor", 1.0)
    original = scaling.whole("original_max_position_embeddings", "original_max_position_embeddings", default=positions)
    if scaling.has("mrope_section"):
        return MROPE_ROOM * positions
    if kind == "yarn":
        return original * factor
    if kind in {"longrope", "su"}:
        return config.whole("original_max_position_embeddings", default=original) + positions
    return positions * factor if kind in {"linear", "dynamic"} else positions
