"""What the layers of a model compute and keep, as facts and not as code."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from sim.section import Section

__all__ = [
    "AnyAttention",
    "AnyMlp",
    "CompressedAttention",
    "DenseMlp",
    "GroupedAttention",
    "Indexer",
    "LatentAttention",
    "Layers",
    "LinearAttention",
    "MoeMlp",
    "NoMlp",
]


class Indexer(Section):
    """A small scorer that picks the tokens which sparse attention reads (DeepSeek V3.2, V4, GLM-5, MiniMax-M3)."""

    heads: int = Field(gt=0)
    head_dim: int = Field(gt=0)
    top_k: int = Field(gt=0, description="Tokens, or compressed entries, that a query reads.")
    params: int = Field(ge=0, description="All weights of the indexer of one layer.")


class GroupedAttention(Section):
    """Multi-head, grouped-query or multi-query attention, over all tokens or over a window."""

    kind: Literal["gqa"] = "gqa"
    heads: int = Field(gt=0)
    kv_heads: int = Field(gt=0)
    head_dim: int = Field(gt=0, description="Width of a query and key head.")
    v_head_dim: int = Field(gt=0, description="Width of a value head; as the key's when left out.")
    window: int | None = Field(None, gt=0, description="Tokens that a query sees; missing: all.")
    chunked: bool = Field(False, description="The window is a fixed chunk of the text instead of sliding along.")
    output_gate: bool = Field(False, description="The query projection also makes a gate of the same size.")
    value_is_key: bool = Field(
        False, description="No value projection: the key serves as the value, and both are cached."
    )
    reuses_kv: bool = Field(
        False, description="Reads the cache of an earlier layer: no key, no value, no cache of its own."
    )
    cross: bool = Field(False, description="Keys and values come from an image: nothing is cached for a text token.")
    indexer: Indexer | None = None
    extra_params: int = Field(0, ge=0, description="Biases, QK norms and sinks of one layer.")

    @model_validator(mode="before")
    @classmethod
    def _value_as_wide_as_key(cls, data: Any) -> Any:
        if isinstance(data, dict) and "v_head_dim" not in data and "head_dim" in data:
            return {**data, "v_head_dim": data["head_dim"]}
        return data


class LatentAttention(Section):
    """Multi-head latent attention (DeepSeek V2, V3, Kimi): the cache holds one latent and one rope key a token."""

    kind: Literal["mla"] = "mla"
    heads: int = Field(gt=0)
    q_lora_rank: int | None = Field(None, gt=0)
    kv_lora_rank: int = Field(gt=0)
    nope_head_dim: int = Field(gt=0)
    rope_head_dim: int = Field(ge=0)
    v_head_dim: int = Field(gt=0)
    output_gate: bool = Field(False, description="A projection of the hidden state gates what the heads give out.")
    indexer: Indexer | None = None
    extra_params: int = Field(0, ge=0, description="Norms of the latents of one layer.")


class CompressedAttention(Section):
    """Attention of DeepSeek V4: one vector is key and value of all heads, kept in a window, compressed for ever."""

    kind: Literal["compressed"] = "compressed"
    heads: int = Field(gt=0)
    head_dim: int = Field(gt=0, description="Width of a head and of the one vector that is cached.")
    q_lora_rank: int = Field(gt=0)
    o_lora_rank: int = Field(gt=0, description="Rank of the output projection of one group of heads.")
    o_groups: int = Field(gt=0)
    window: int = Field(gt=0, description="Tokens kept as they are.")
    ratio: int | None = Field(None, gt=0, description="Older tokens that share one entry; missing: only the window.")
    indexer: Indexer | None = None
    extra_params: int = Field(0, ge=0, description="Compressor, norms and sinks of one layer.")


class LinearAttention(Section):
    """A layer whose state does not grow with the context: gated delta net, Mamba, linear attention."""

    kind: Literal["linear"] = "linear"
    params: int = Field(gt=0, description="All weights of the mixer of one layer.")
    state_bytes: float = Field(ge=0, description="State of one sequence in one layer [B].")


AnyAttention = Annotated[
    GroupedAttention | LatentAttention | CompressedAttention | LinearAttention, Field(discriminator="kind")
]


class DenseMlp(Section):
    """One feed-forward network for all tokens."""

    kind: Literal["dense"] = "dense"
    intermediate: int = Field(gt=0)
    gated: bool = Field(True, description="Three matrices (gate, up, down) instead of two.")
    extra_params: int = Field(0, ge=0, description="Biases of one layer.")


class MoeMlp(Section):
    """A router that sends each token to *top_k* of *experts*, beside shared experts."""

    kind: Literal["moe"] = "moe"
    experts: int = Field(gt=0)
    top_k: int = Field(gt=0)
    expert_intermediate: int = Field(gt=0, description="Width of one routed expert.")
    shared_intermediate: int = Field(
        0, ge=0, description="Width of all that every token passes beside the routed experts."
    )
    latent: int | None = Field(
        None, gt=0, description="Routed experts work on a projection of this width; missing: hidden size."
    )
    gated: bool = True
    expert_biases: int = Field(0, ge=0, description="Biases of one routed expert.")
    extra_params: int = Field(0, ge=0, description="Router bias and gate of the shared expert, of one layer.")


class NoMlp(Section):
    """A layer without a feed-forward part (Nemotron-H, Mamba stacks)."""

    kind: Literal["none"] = "none"


AnyMlp = Annotated[DenseMlp | MoeMlp | NoMlp, Field(discriminator="kind")]


class Layers(Section):
    """*count* equal layers."""

    count: int = Field(gt=0, le=1000)
    attention: AnyAttention | None = Field(None, description="Missing for a layer that has only a feed-forward part.")
    mlp: AnyMlp
    norm_params: int = Field(0, ge=0, description="Weights of the layer's norms.")
