"""The pieces that most architectures share, read from the keys that most configs have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sim.profiles.huggingface.config import Config
from sim.profiles.layers import AnyAttention, AnyMlp, DenseMlp, GroupedAttention, Layers, MoeMlp
from sim.profiles.params import layer_params

__all__ = [
    "Architecture",
    "dense",
    "grouped",
    "head_dim",
    "heads",
    "hidden",
    "layer",
    "moe",
    "mtp_params",
    "num_layers",
    "sliding_layers",
    "sparse_layers",
    "window",
    "windows",
]

FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What a family's reader makes of a config.

    Attributes
    ----------
    layers
        Every layer, from the first to the last, each with count 1.
    extra_params
        Weights outside of the layers, beside embeddings and head; None: one norm.
    mtp_params
        Weights of multi-token-prediction layers.
    tied
        Whether the head shares the embeddings when the config does not say.
    rotary_dim
        Width that rotary embeddings turn; None: `head_dim`; 0: no rotary embeddings.
    local_rotary
        The windowed layers have rotary embeddings of their own.
    vocab_size, max_position_embeddings
        Defaults of the architecture, for configs that leave them out; None: the config must say.
    notes
        What the reader had to assume.
    """

    layers: list[Layers]
    extra_params: int | None = None
    mtp_params: int = 0
    tied: bool = False
    rotary_dim: int | None = None
    local_rotary: bool = False
    vocab_size: int | None = None
    max_position_embeddings: int | None = None
    notes: list[str] = field(default_factory=list)


def hidden(config: Config) -> int:
    """Return the hidden size."""
    return config.whole("hidden_size", "d_model", most=10**6)


def num_layers(config: Config) -> int:
    """Return the number of layers."""
    return config.whole("num_hidden_layers", "n_layers", most=1000)


def heads(config: Config) -> int:
    """Return the number of query heads."""
    return config.whole("num_attention_heads", "n_heads", most=100_000)


def head_dim(config: Config) -> int:
    """Return the width of a head: as written, else hidden size over heads."""
    if config.has("head_dim", "attention_head_dim"):
        return config.whole("head_dim", "attention_head_dim", most=10**6)
    size, count = hidden(config), heads(config)
    if size % count:
        config.fail("num_attention_heads", f"{count} heads do not divide hidden_size {size}, and there is no head_dim")
    return size // count


def window(config: Config, *names: str) -> int | None:
    """Return the sliding window; None if there is none, it is switched off, or it covers the whole context."""
    if not config.flag("use_sliding_window", True) or not config.has(*(names or ("sliding_window",))):
        return None
    tokens = config.whole(*(names or ("sliding_window",)))
    return None if tokens >= config.whole("max_position_embeddings", default=tokens + 1) else tokens


def grouped(
    config: Config, *, qkv_bias: bool = False, o_bias: bool = False, extra: int = 0, **fields: Any
) -> GroupedAttention:
    """Return grouped attention as most configs write it; *fields* replace what the config says."""
    kv_names = ("num_key_value_heads", "num_kv_heads", "kv_n_heads")
    shape: dict[str, Any] = {"heads": heads(config), "head_dim": head_dim(config), **fields}
    shape.setdefault("kv_heads", config.whole(*kv_names, default=shape["heads"], most=100_000))
    shape.setdefault("v_head_dim", shape["head_dim"])
    if shape["heads"] % shape["kv_heads"]:
        key, _ = config.get(*kv_names)
        config.fail(key, f"{shape['kv_heads']} KV heads do not divide {shape['heads']} heads")
    biases = shape["heads"] * shape["head_dim"] + shape["kv_heads"] * (shape["head_dim"] + shape["v_head_dim"])
    extra += (biases if qkv_bias else 0) + (hidden(config) if o_bias else 0)
    return GroupedAttention(**shape, extra_params=extra)


def dense(config: Config, *names: str, gated: bool = True, bias: bool = False) -> DenseMlp:
    """Return a dense feed-forward part of width *names*."""
    width = config.whole(*(names or ("intermediate_size",)))
    extra = (hidden(config) + width * (2 if gated else 1)) if bias else 0
    return DenseMlp(intermediate=width, gated=gated, extra_params=extra)


EXPERTS = ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts")
TOP_K = ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "experts_per_token", "moe_top_k")


def moe(
    config: Config, *width: str, shared: int = 0, extra: int = 0, router_bias: bool = False, **fields: Any
) -> MoeMlp:
    """Return routed experts of width *width*, beside *shared* width that every token passes."""
    experts = config.whole(*EXPERTS, most=100_000)
    top_k = config.whole(*TOP_K)
    if top_k > experts:
        config.fail(config.get(*TOP_K)[0], f"{top_k} of only {experts} experts")
    return MoeMlp(
        experts=experts,
        top_k=top_k,
        expert_intermediate=config.whole(*(width or ("moe_intermediate_size",))),
        shared_intermediate=shared,
        extra_params=extra + (experts if router_bias else 0),
        **fields,
    )


def layer(attention: AnyAttention | None, mlp: AnyMlp, norms: int) -> Layers:
    """Return one layer."""
    return Layers(count=1, attention=attention, mlp=mlp, norm_params=norms)


def sliding_layers(config: Config, count: int, default: int | None = None) -> list[bool]:
    """Say of each layer whether it keeps a window.

    From `layer_types`, else from `sliding_window_pattern` (every n-th layer is global), else every *default*-th is
    global, else none is windowed.
    """
    if kinds := config.texts("layer_types", count, frozenset({FULL, SLIDING})):
        return [kind == SLIDING for kind in kinds]
    if not config.has("sliding_window_pattern") and default is None:
        return [False] * count
    period = config.whole("sliding_window_pattern", "_sliding_window_pattern", default=default)
    return [(index + 1) % period != 0 for index in range(count)]


def windows(config: Config, count: int) -> list[int | None]:
    """Return the window of each layer: those that `layer_types` names, else all from `max_window_layers` on."""
    tokens = window(config)
    first = config.whole("max_window_layers", default=0, least=0)
    kinds = config.texts("layer_types", count, frozenset({FULL, SLIDING}))
    sliding = [index >= first for index in range(count)] if kinds is None else [kind == SLIDING for kind in kinds]
    return [tokens if windowed else None for windowed in sliding]


def sparse_layers(config: Config, count: int) -> list[bool]:
    """Say of each layer whether it has experts, by whichever of the ways the config uses.

    `moe_layer_freq` as a list; `mlp_layer_types`; else every `moe_layer_freq`- or `decoder_sparse_step`-th layer that
    is neither among the first `first_k_dense_replace` nor in `mlp_only_layers`.
    """
    if isinstance(config.get("moe_layer_freq")[1], list):
        return [bool(value) for value in config.wholes("moe_layer_freq", count) or ()]
    if kinds := config.texts("mlp_layer_types", count, frozenset({"dense", "sparse", "moe", "hash_moe"})):
        return [kind != "dense" for kind in kinds]
    first = config.whole("first_k_dense_replace", default=0, least=0)
    step = config.whole("moe_layer_freq", "decoder_sparse_step", default=1)
    offset = 1 if config.has("decoder_sparse_step") else 0
    only_dense = config.indices("mlp_only_layers")
    return [index >= first and (index + offset) % step == 0 and index not in only_dense for index in range(count)]


def mtp_params(config: Config, last: Layers) -> int:
    """Return the weights of multi-token-prediction layers: one projection 2*h -> h, three norms and a whole layer each.

    DeepSeek-V3 report (arXiv 2412.19437, section 2.2); embeddings and head are shared with the main model.
    """
    names = ("num_nextn_predict_layers", "mtp_num_hidden_layers")
    size = hidden(config)
    count = config.whole(*names, default=0, least=0, most=100)
    return count * (2 * size * size + 3 * size + layer_params(last, size).total())
