"""How an engine divides a card's memory: the constants of its budget, by kind of engine.

An engine profile writes one of these under ``memory`` of each version; `sim.memory` holds the arithmetic.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sim.profiles.quantization import Dtype
from sim.section import Section
from sim.units import Bytes

__all__ = [
    "Activations",
    "CudaGraphs",
    "EngineMemory",
    "FreeFractionMemory",
    "Padding",
    "ProfiledMemory",
    "SlotMemory",
    "StaticFractionMemory",
]


class Padding(Section):
    """Multiples to which an engine rounds the matrices of experts of one data type."""

    hidden: int = Field(1, ge=1, description="The model's hidden size is rounded up to a multiple of this.")
    intermediate: int = Field(1, ge=1, description="The width of an expert on one rank, likewise.")


class CudaGraphs(Section):
    """Memory of captured CUDA graphs: a fixed part, and a part for each layer and captured batch size."""

    fixed_bytes: Bytes = Field(ge=0, description="[B]")
    per_layer_and_size_bytes: Bytes = Field(ge=0, description="For each layer of a rank and each captured size [B].")
    moe_bytes: Bytes = Field(0.0, ge=0, description="More for a model with routed experts [B].")
    subtracted: bool = Field(description="The engine takes it off the KV cache (vLLM from 0.21).")


class Activations(Section):
    """Peak of the forward pass and of the sampler; what is not measured for an engine may be left at 0."""

    forward_hidden_copies: float = Field(
        0.0,
        ge=0,
        description="Tensors of tokens x hidden size alive at a layer's peak, beside the feed-forward ones.",
    )
    sampler_bytes: float = Field(
        0.0,
        ge=0,
        description="For each sequence and vocabulary entry while max_num_seqs sequences are sampled [B].",
    )
    sampler_hidden_copies: float = Field(0.0, ge=0, description="Tensors of tokens x hidden size alive while sampling.")
    fixed_bytes: Bytes = Field(0.0, ge=0, description="Library workspaces inside the framework's pool [B].")
    vision_bytes: Bytes | None = Field(
        None, ge=0, description="More for a model with a vision or audio tower [B]; missing: not known."
    )
    moe_workspace_held: tuple[Dtype, ...] = Field(
        (), description="Types of expert weights whose kernels keep their workspace while the sampler runs."
    )
    mla_context_tokens: int = Field(
        0, ge=0, description="Past tokens whose latent is expanded at once for a prefill chunk."
    )
    mla_absorbed_copies: bool = Field(
        False, description="The up-projections of keys and values are kept twice, to decode in the latent."
    )
    index_logits_bytes: float = Field(
        0.0,
        ge=0,
        description="Of a sparse-attention indexer, a computed token and position of max_model_len [B].",
    )
    index_logits_cap_bytes: dict[str, Bytes] = Field(
        {},
        description="Largest such buffer by the card's vendor [B]; a vendor that is not listed has no limit.",
    )
    padding: dict[str, Padding] = Field({}, description="Padding of expert matrices, by data type.")


class ProfiledMemory(Section):
    """vLLM: KV = visible memory x utilization - weights - profiled peak - non-torch (- CUDA graphs)."""

    kind: Literal["profiled"] = "profiled"
    activations: Activations
    non_torch_bytes: Bytes = Field(ge=0, description="Outside the framework's pool on a rank that works alone [B].")
    non_torch_tp_bytes: Bytes = Field(ge=0, description="The same with tensor parallelism: buffers of collectives [B].")
    non_torch_pp_bytes: Bytes = Field(ge=0, description="The same with pipeline stages of one rank each [B].")
    cuda_graphs: CudaGraphs
    hybrid_groups: bool = Field(True, description="Layers with windows or states have block tables of their own.")
    in_flight_batches: int = Field(1, ge=1, description="Batches whose tokens a window must also hold.")
    group_padding_ratio: float = Field(
        1.25,
        ge=1,
        description="Groups take the larger layer count if it is below this multiple of the smaller.",
    )
    log_tokens: Literal["groups", "requests"] = Field(
        "groups",
        description="'KV cache size' of several groups: tokens of one group, or requests x max_model_len.",
    )


class StaticFractionMemory(Section):
    """SGLang: weights + KV = free memory before loading x mem_fraction_static."""

    kind: Literal["static_fraction"] = "static_fraction"
    activations: Activations = Activations()
    context_bytes: Bytes = Field(ge=0, description="CUDA context and libraries, taken before memory is measured [B].")
    collectives_bytes: Bytes = Field(ge=0, description="Taken as well with more than one rank [B].")
    window_tokens_ratio: float = Field(
        1.0, gt=0, le=1, description="Tokens of the pool of windowed layers by those of the full ones."
    )
    reserved_bytes: Bytes = Field(0.0, ge=0, description="Kept out of the default fraction [B].")
    reserved_per_chunk_token_bytes: Bytes = Field(0.0, ge=0, description="The same, a token of a prefill chunk [B].")
    reserved_per_graph_row_bytes: Bytes = Field(0.0, ge=0, description="The same, a row of the largest graph [B].")
    reserved_per_rank_bytes: Bytes = Field(0.0, ge=0, description="The same, a rank of tp x pp [B].")
    reserved_floor_bytes: Bytes = Field(0.0, ge=0, description="Least reserve on cards above 60 GiB [B].")


class FreeFractionMemory(Section):
    """TensorRT-LLM: KV = what is free after weights and activations x free_gpu_memory_fraction."""

    kind: Literal["free_fraction"] = "free_fraction"
    activations: Activations = Activations()
    context_bytes: Bytes = Field(ge=0, description="CUDA context and libraries [B].")
    collectives_bytes: Bytes = Field(ge=0, description="Taken as well with more than one rank [B].")


class SlotMemory(Section):
    """llama.cpp and Ollama: the cache of all slots is allocated at the start; a margin stays free."""

    kind: Literal["slots"] = "slots"
    context_bytes: Bytes = Field(ge=0, description="CUDA context and libraries [B].")
    margin_bytes: Bytes = Field(ge=0, description="Left free on each card [B].")
    micro_batch_tokens: int = Field(512, gt=0, description="`n_ubatch`: tokens computed at once.")
    shared_context: bool = Field(
        False, description="All slots share one context of max_model_len, instead of having one each."
    )
    pad_tokens: int = Field(256, gt=0, description="The cache of a windowed layer is rounded up to this.")


EngineMemory = Annotated[
    ProfiledMemory | StaticFractionMemory | FreeFractionMemory | SlotMemory, Field(discriminator="kind")
]
