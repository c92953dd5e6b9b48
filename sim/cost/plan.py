"""From a model's layers to the operations of one rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sim.cost.accelerator import Accelerator
from sim.cost.all_to_all import Library
from sim.cost.allreduce import AllReduce
from sim.cost.attention import DecodeAttention, PrefillAttention
from sim.cost.elementwise import Elementwise
from sim.cost.gemm import Gemm
from sim.cost.operation import Operation
from sim.cost.rates import GemmRates
from sim.cost.routed import ACTIVATION_BYTES, exchanges_of, experts_of, rebalancing_of
from sim.cost.uneven_experts import ExpertLoads, UnevenExperts
from sim.moe.mixture import Rebalance
from sim.profiles.cache import indexer_bytes
from sim.profiles.layers import (
    AnyAttention,
    CompressedAttention,
    DenseMlp,
    GroupedAttention,
    Indexer,
    LatentAttention,
    Layers,
    LinearAttention,
    MoeMlp,
)
from sim.profiles.model import Model
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Part, Quantization, bytes_per_element

__all__ = ["BY_ALL_RANKS", "SHARED", "Plan", "reach_of", "windows_of"]

BY_ALL_RANKS = ("experts", "expert_exchange", "rebalancing")
"""Operations that attention data parallel ranks do together."""
SHARED = ("mlp_gemm",)
"""In a layer with routed experts, the operations of those that every token passes."""


def reach_of(attention: AnyAttention | None) -> int | None:
    """Return how many tokens a query reads at most: a window, or what a sparse-attention indexer picks; None: all."""
    indexer: Indexer | None = getattr(attention, "indexer", None)
    if indexer is not None:
        return indexer.top_k * ((attention.ratio or 1) if isinstance(attention, CompressedAttention) else 1)
    return attention.window if isinstance(attention, GroupedAttention) else None


def windows_of(model: Model) -> tuple[int, ...]:
    """Return the different numbers of tokens to which attention of *model* is limited, ascending."""
    attentions = [layers.attention for layers in model.layers]
    reaches = [reach_of(attention) for attention in attentions]
    recent = [attention.window for attention in attentions if isinstance(attention, CompressedAttention)]
    return tuple(sorted({reach for reach in (*reaches, *recent) if reach is not None}))


@dataclass(frozen=True, slots=True)
class Plan:
    """One replica's model on its accelerators; each method yields operations of one rank.

    *tokens_each* is how many tokens a decode computes in an iteration, *reads* how often it reads its context for them.
    """

    model: Model
    accelerator: Accelerator
    quantization: Quantization
    parallelism: Parallelism
    kv: str
    loads: ExpertLoads = field(default_factory=dict)
    library: Library | None = None
    tokens_each: float = 1
    rebalance: Rebalance | None = None
    reads: float = 1

    def layers(self) -> Iterator[Operation]:
        """Yield the operations of all layers."""
        for layers in self.model.layers:
            yield from self.of(layers)

    def of(self, layers: Layers) -> Iterator[Operation]:
        """Yield the operations of *layers*."""
        if layers.attention is not None:
            yield from self._attention(layers.attention, layers.count)
            yield from self._all_reduce(layers.count)
        yield from self._mlp(layers)

    def head(self) -> Iterator[Operation]:
        """Yield the output head, the gathering of its logits and the sampling, for the sampled sequences.

        A gather moves half of an all-reduce's bytes. Logits are cast to 32 bits and read again by the sampler: 10 bytes
        an entry.
        """
        hidden, vocab, tp = self.model.hidden_size, self.model.vocab_size, self.parallelism.tp
        yield Gemm("head", 1, hidden, -(-vocab // tp), self._gemm("head"), "sampled")
        if tp > 1:
            yield AllReduce("head", 1, tp, ACTIVATION_BYTES * vocab / 2, self.accelerator.link(tp), "sampled")
        yield Elementwise("sampling", 1, 10.0 * vocab, 2, self.accelerator.elementwise(), "sampled")

    def joined(self, features: int) -> Operation:
        """Return the projection of a drafting layer, from the *features* of hidden state and token to its width."""
        return self._product("draft", 1, features, -(-self.model.hidden_size // self.parallelism.tp), "mlp")

    def transfer(self) -> Operation:
        """Return what passes from one pipeline stage to the next: the hidden states, once over the link."""
        payload = ACTIVATION_BYTES * self.model.hidden_size
        return AllReduce("pipeline", 1, 2, payload, self.accelerator.link(2))

    def _attention(self, attention: AnyAttention, count: int) -> Iterator[Operation]:
        if isinstance(attention, GroupedAttention):
            yield from self._grouped(attention, count)
        elif isinstance(attention, LatentAttention):
            yield from self._latent(attention, count)
        elif isinstance(attention, CompressedAttention):
            yield from self._compressed(attention, count)
        else:
            yield from self._linear(attention, count)
        indexer: Indexer | None = getattr(attention, "indexer", None)
        if indexer is not None:
            yield from self._index(indexer, indexer_bytes(attention), count)

    def _grouped(self, attention: GroupedAttention, count: int) -> Iterator[Operation]:
        """Grouped-query attention: QKV and output products, norm and rotary embedding, attention itself.

        Two products of ``head_dim`` and ``v_head_dim`` multiply-adds for each query-key pair and query head.
        KV heads are copied where tensor parallelism exceeds their number.
        """
        hidden, heads = self.model.hidden_size, -(-attention.heads // self.parallelism.tp)
        kv_heads = max(1, attention.kv_heads // self.parallelism.tp)
        width = attention.head_dim + attention.v_head_dim
        queries = heads * attention.head_dim * (2 if attention.output_gate else 1)
        made = attention.head_dim if attention.value_is_key else width
        keys_and_values = 0 if attention.reuses_kv or attention.cross else kv_heads * made
        yield self._product("attention_gemm", count, hidden, queries + keys_and_values, "attention")
        yield self._product("attention_gemm", count, heads * attention.v_head_dim, hidden, "attention")
        yield self._elementwise(count, 4 * hidden + 6 * heads * attention.head_dim, 2)
        if not attention.cross:
            kept_bytes = kv_heads * width * bytes_per_element(self.kv)
            made_bytes, reach, head_dim = 2.0 * kv_heads * width, reach_of(attention), attention.head_dim
            yield self._decode(count, 2.0 * heads * width, kept_bytes, kv_heads, reach, head_dim, heads)
            yield self._prefill(count, heads, width, kept_bytes, made_bytes, reach, head_dim)

    def _latent(self, attention: LatentAttention, count: int) -> Iterator[Operation]:
        """Multi-head latent attention (DeepSeek-V2, section 2.1).

        Decodes use the absorbed form: every head attends to the one latent, which each rank holds in full. Prefill
        attends in the expanded form; expanding (or absorbing) a token costs the same product either way.
        """
        hidden, heads = self.model.hidden_size, -(-attention.heads // self.parallelism.tp)
        latent, kept = attention.kv_lora_rank, attention.kv_lora_rank + attention.rope_head_dim
        query_width = attention.nope_head_dim + attention.rope_head_dim
        values = heads * attention.v_head_dim
        yield self._product("attention_gemm", count, hidden, kept + (attention.q_lora_rank or 0), "attention")
        yield self._product("attention_gemm", count, attention.q_lora_rank or hidden, heads * query_width, "attention")
        yield self._product("attention_gemm", count, latent, heads * attention.nope_head_dim + values, "attention")
        if attention.output_gate:
            yield self._product("attention_gemm", count, hidden, values, "attention")
        yield self._product("attention_gemm", count, values, hidden, "attention")
        yield self._elementwise(count, 4 * hidden + 6 * heads * query_width, 2)
        kept_bytes, reach = kept * bytes_per_element(self.kv), reach_of(attention)
        yield self._decode(count, 2.0 * heads * (kept + latent), kept_bytes, 1, reach, heads=heads, latent=True)
        width = query_width + attention.v_head_dim
        yield self._prefill(count, heads, width, kept_bytes, 2.0 * kept, reach, latent=True)

    def _compressed(self, attention: CompressedAttention, count: int) -> Iterator[Operation]:
        """Yield attention of DeepSeek V4: one vector for all heads, recent ones as they are, older ones compressed."""
        hidden, heads = self.model.hidden_size, -(-attention.heads // self.parallelism.tp)
        width = heads * attention.head_dim
        yield self._product("attention_gemm", count, hidden, attention.q_lora_rank + attention.head_dim, "attention")
        yield self._product("attention_gemm", count, attention.q_lora_rank, width, "attention")
        yield self._product("attention_gemm", count, width // attention.o_groups, attention.o_lora_rank, "attention")
        yield self._product("attention_gemm", count, attention.o_lora_rank * attention.o_groups, hidden, "attention")
        yield self._elementwise(count, 4 * hidden + 6 * width, 2)
        flops, kept_bytes = 4.0 * width, attention.head_dim * bytes_per_element(self.kv)
        yield self._decode(count, flops, kept_bytes, 1, attention.window, latent=True)
        if attention.ratio:
            share = 1.0 / attention.ratio
            yield self._decode(count, flops * share, kept_bytes * share, 1, reach_of(attention), latent=True)
        made = 2.0 * attention.head_dim
        yield self._prefill(count, heads, 2 * attention.head_dim, kept_bytes, made, attention.window, latent=True)

    def _linear(self, attention: LinearAttention, count: int) -> Iterator[Operation]:
        """Yield a mixer with constant state: weights as one product, state read and written once a sequence."""
        hidden, tp = self.model.hidden_size, self.parallelism.tp
        width = max(1, attention.params // hidden // tp)
        yield self._product("attention_gemm", count, hidden, width, "attention")
        yield self._elementwise(count, 4 * hidden + 2 * width, 2)
        rates, moved_bytes = self.accelerator.elementwise(), 2.0 * attention.state_bytes / tp
        yield Elementwise("state", count, moved_bytes, 1, rates, "sequences")

    def _index(self, indexer: Indexer, kept_bytes: float, count: int) -> Iterator[Operation]:
        """Yield the scorer of sparse attention: projections, and one dot product a head with every key it keeps."""
        hidden = self.model.hidden_size
        yield self._product("attention_gemm", count, hidden, max(1, indexer.params // hidden), "attention")
        flops = 2.0 * indexer.heads * kept_bytes
        yield self._decode(count, flops, kept_bytes, 1, None, latent=True)

    def _mlp(self, layers: Layers) -> Iterator[Operation]:
        mlp, count = layers.mlp, layers.count
        if isinstance(mlp, DenseMlp):
            yield from self._dense(count, mlp.intermediate, gated=mlp.gated)
            yield self._elementwise(count, 4 * self.model.hidden_size + 3 * mlp.intermediate / self.parallelism.tp, 1)
            yield from self._all_reduce(count)
        elif isinstance(mlp, MoeMlp):
            yield from self._moe(mlp, count)

    def _dense(self, count: int, intermediate: int, *, gated: bool) -> Iterator[Operation]:
        hidden, width = self.model.hidden_size, -(-intermediate // self.parallelism.tp)
        yield self._product("mlp_gemm", count, hidden, width * (2 if gated else 1), "mlp")
        yield self._product("mlp_gemm", count, width, hidden, "mlp")

    def _moe(self, mlp: MoeMlp, count: int) -> Iterator[Operation]:
        """Router, shared and routed experts.

        With attention data parallelism a library carries tokens to their experts and back. Without one, all ranks
        gather the tokens of all and scatter the sums back, which together moves the bytes of one all-reduce (vLLM's
        ``allgather_reducescatter``). Without attention data parallelism one all-reduce ends the layer. The experts' own
        time has their choice, sorting, activation and sum; a norm is left, and the shared experts' activation.
        """
        hidden, parallel = self.model.hidden_size, self.parallelism
        yield Gemm("router", count, hidden, mlp.experts, self.accelerator.gemm("bf16"))
        if mlp.shared_intermediate:
            yield from self._dense(count, mlp.shared_intermediate, gated=mlp.gated)
        if mlp.latent:
            yield self._product("mlp_gemm", count, hidden, 2 * mlp.latent, "mlp")
        experts, load = experts_of(self, mlp, count), self.loads.get((mlp.experts, mlp.top_k))
        yield experts if load is None else UnevenExperts(experts, load)
        if load is not None and self.rebalance is not None and not self.rebalance.use_async:
            yield rebalancing_of(self, experts, load, self.rebalance)
        kernels = 1 + bool(mlp.shared_intermediate)
        yield self._elementwise(count, 4 * hidden + 3 * mlp.shared_intermediate / parallel.tp, kernels)
        if parallel.dp > 1 and self.library is not None:
            yield from exchanges_of(self, self.library, mlp, count, load)
        elif parallel.dp > 1:
            payload = ACTIVATION_BYTES * hidden * parallel.dp
            ranks = parallel.tp * parallel.dp
            yield AllReduce("expert_exchange", count, ranks, payload, self.accelerator.link(ranks))
        else:
            yield from self._all_reduce(count)

    def _decode(
        self,
        count: int,
        flops: float,
        kept_bytes: float,
        kv_heads: int,
        reach: int | None,
        head_dim: int = 0,
        heads: int = 0,
        *,
        latent: bool = False,
    ) -> DecodeAttention:
        window = None if reach is None else windows_of(self.model).index(reach)
        rates = self.accelerator.decode(self.kv, head_dim, heads, latent=latent)
        flops, kept_bytes, units = flops * self.tokens_each, kept_bytes * self.reads, kv_heads * self.reads
        queries = heads * self.tokens_each
        return DecodeAttention("attention_decode", count, flops, kept_bytes, units, rates, window, queries)

    def _prefill(
        self,
        count: int,
        heads: int,
        width: int,
        kept_bytes: float,
        made_bytes: float,
        reach: int | None,
        head_dim: int = 0,
        *,
        latent: bool = False,
    ) -> PrefillAttention:
        rates = self.accelerator.prefill(self.kv, head_dim, latent=latent)
        return PrefillAttention("attention_prefill", count, heads, width, kept_bytes, made_bytes, rates, reach)

    def _all_reduce(self, count: int) -> Iterator[Operation]:
        """Row-parallel products leave partial sums: one all-reduce of the hidden state of each token."""
        if self.parallelism.tp > 1:
            payload = ACTIVATION_BYTES * self.model.hidden_size
            link = self.accelerator.link(self.parallelism.tp)
            yield AllReduce("all_reduce", count, self.parallelism.tp, payload, link)

    def _product(self, name: str, count: int, k: int, n: int, part: Part) -> Gemm:
        return Gemm(name, count, k, n, self._gemm(part))

    def _elementwise(self, count: int, elements: float, kernels: int) -> Elementwise:
        rates = self.accelerator.elementwise()
        return Elementwise("elementwise", count, ACTIVATION_BYTES * elements, kernels, rates)

    def _gemm(self, part: Part) -> GemmRates:
        return self.accelerator.gemm(self.model.dtype_of(part, self.quantization), self.quantization.activations)
