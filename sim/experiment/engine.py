"""The serving engine of an experiment and its flags."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sim.kv import Eviction
from sim.kv.tiers import Write
from sim.profiles.engine_graphs import LARGEST_GRAPH
from sim.profiles.grammar import Difficulty
from sim.scheduler import AnyScheduler
from sim.section import Section
from sim.speculation import AnySpeculation
from sim.units import Bytes, BytesPerSecond, Seconds

__all__ = ["AllToAll", "EngineOptions", "KvOffload", "OffloadTier", "StructuredBackend"]


class AllToAll(Section):
    """A library that carries tokens to the ranks of their experts and back."""

    library: str = Field(
        "deepep",
        description="Its calibrated profile: deepep, as its engine calls it in prompts deepep-vllm or deepep-trtllm,"
        " trtllm-nvlink.",
    )
    mode: Literal["low_latency", "high_throughput", "auto"] = Field(
        "auto", description="auto: low latency up to 256 tokens of a rank, and high throughput beyond."
    )


class OffloadTier(Section):
    """Memory beside the KV cache, of one replica."""

    capacity: Bytes = Field(gt=0, description="Room for KV blocks of a replica, over all its accelerators [B].")
    bandwidth: BytesPerSecond | None = Field(
        None, gt=0, description="To each accelerator; of the first tier, if missing, that of PCIe [B/s]."
    )


class KvOffload(Section):
    """Where KV blocks go beside the accelerators, the fastest place first: host memory, disk."""

    tiers: tuple[OffloadTier, ...] = Field(min_length=1, description="Each takes what the one before has no room for.")
    write: Write = Field("write_through", description="Copy blocks as soon as they are full, or when they are evicted.")


class StructuredBackend(Section):
    """The library that keeps answers to a grammar; `workload.structured_output` says which answers."""

    backend: str | None = Field(None, description="xgrammar, llguidance, outlines or gbnf; missing: the engine's own.")
    difficulty: Difficulty = Field(
        "mixed", description="Of the schemas: mixed, with the few very hard ones of a large collection; or typical."
    )
    mask_s: Seconds | None = Field(None, ge=0, description="A mask, for a sampled token; missing: measured [s].")
    compile_s: Seconds | None = Field(
        None, ge=0, description="A schema that is new to a replica; missing: measured [s]."
    )
    overlapped: bool | None = Field(None, description="Masks are made beside the GPU; missing: as the engine does.")


class EngineOptions(Section):
    """The serving engine and its flags, under vLLM's own names; a missing one is the engine version's default."""

    kind: str = Field("vllm", description="Engine profile.")
    version: str = Field("latest", description="Version of the engine; picks its defaults and constants.")
    calibration: str | None = Field(
        None,
        description="Constants fitted to serving runs, by name or path; none: those of the engine profile; missing:"
        " those of the engine's name, if there are any.",
    )
    flags: str | tuple[str, ...] | None = Field(
        None, description="Command line of the server, as text or word by word, for the fields that it stands for."
    )
    scheduler: AnyScheduler | None = Field(None, description="Missing: the engine version's own.")
    all_to_all: AllToAll | None = Field(
        None, description="How attention data parallel ranks reach routed experts; missing: gathered by collectives."
    )
    enable_dbo: bool = Field(
        False,
        description="vLLM's dual batch overlap: halves of a batch compute while the other's tokens are with the"
        " `all_to_all` library.",
    )
    dbo_decode_token_threshold: int | None = Field(
        None, ge=2, description="With enable_dbo: least tokens of a rank that only decodes; missing: 32 [tokens]."
    )
    dbo_prefill_token_threshold: int | None = Field(
        None, ge=2, description="With enable_dbo: least tokens of a rank with prompts; missing: 512 [tokens]."
    )
    enable_two_batch_overlap: bool = Field(False, description="The same of SGLang, which splits whatever it can.")
    speculative: AnySpeculation | None = Field(
        None, description="Drafts that are verified several tokens at a time; missing: none."
    )
    structured_output: StructuredBackend | None = Field(
        None, description="How answers are kept to a grammar; missing: by the engine's own library."
    )
    gpu_memory_utilization: float | None = Field(None, gt=0, le=1, description="Share of the memory to use.")
    max_captured_batch: int | None = Field(
        None,
        ge=0,
        le=LARGEST_GRAPH,
        description="Largest batch whose kernels are replayed as a CUDA graph; of larger ones the host launches each;"
        " 0: it always does; missing: the engine version's own.",
    )
    captured_batches: tuple[Annotated[int, Field(ge=1, le=LARGEST_GRAPH)], ...] | None = Field(
        None,
        min_length=1,
        description="All batches that are captured, instead of the engine version's up to `max_captured_batch`.",
    )
    graph_padding: bool | None = Field(
        None,
        description="Smaller batches run as the next captured one, with rows for nobody; missing: as the engine version"
        " does.",
    )
    prefix_caching: bool | None = Field(None, description="Reuse the KV of equal prompt prefixes.")
    cache_generated: bool | None = Field(None, description="Key the blocks of answers, too.")
    swap_space: Bytes | None = Field(
        None, ge=0, description="Host memory for each accelerator that preempted requests may use; missing: 4 GiB [B]."
    )
    eviction: Eviction = Field(
        "lru",
        description="Which unused blocks of the prefix cache go first: lru, the least recently used; lfu, the least"
        " often used; slru, those used once; priority, those of the least urgent requests.",
    )
    kv_offload: KvOffload | None = Field(None, description="Tiers of the prefix cache; missing: none.")
    kv_layout: Literal["paged", "contiguous"] = Field(
        "paged", description="contiguous: every request gets room for max_model_len at once, as before paged attention."
    )
    partial_reuse: bool | None = Field(None, description="Keep the partly filled last blocks of prompts, too.")
    block_size: int | None = Field(None, ge=1, le=4096, description="Tokens of a KV block [tokens].")
    max_model_len: int | None = Field(
        None, ge=1, description="Longest sequence accepted, answer included; missing: the model's own [tokens]."
    )
    request_timeout_s: Seconds | None = Field(
        None, gt=0, description="The server gives up what it has not answered by then [s]."
    )
    queue_timeout_s: Seconds | None = Field(
        None, gt=0, description="The server gives up what it has not admitted by then [s]."
    )
    num_gpu_blocks_override: int | None = Field(
        None, ge=1, le=2**40, description="KV blocks of a replica, instead of the memory plan's [blocks]."
    )
