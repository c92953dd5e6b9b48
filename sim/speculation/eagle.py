"""EAGLE: one transformer layer on the hidden states of the model drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from sim.errors import ConfigError
from sim.profiles.draft import Draft
from sim.profiles.layers import DenseMlp, GroupedAttention, Layers, MoeMlp
from sim.profiles.model import Model
from sim.profiles.quantization import Quantization
from sim.speculation.base import Speculation

__all__ = ["Eagle"]


class Eagle(Speculation):
    """A layer as wide as the model's, dense and in 16 bits, that attends to all tokens; it runs once a position.

    Its head is the model's own, or (EAGLE-3) one of *draft_vocab_size* entries. Source: Li et al. 2025,
    arXiv:2503.01840; vLLM `model_executor/models/llama_eagle3.py`.
    """

    kind: Literal["eagle"] = "eagle"
    draft_vocab_size: int | None = Field(
        None, ge=1, description="Entries of a head of its own; missing: the head of the model."
    )

    def draft(self, target: Model, quantization: Quantization, load: Callable[[str], Model]) -> Draft | None:
        """Return a dense layer of the model's width, with the head."""
        layer = Layers(count=1, attention=_attention(target), mlp=DenseMlp(intermediate=_width(target)))
        model = Model(
            name=f"EAGLE for {target.name}",
            architecture="eagle",
            hidden_size=target.hidden_size,
            vocab_size=self.draft_vocab_size or target.vocab_size,
            max_position_embeddings=target.max_position_embeddings,
            tied_embeddings=True,
            layers=(layer,),
            dtype=target.dtype,
            sources=target.sources,
        )
        joined = 2 * target.hidden_size
        head = model.params_of("embeddings")
        own = model.params - (0 if self.draft_vocab_size else head) + joined * target.hidden_size
        return Draft(model, Quantization(kv_cache=quantization.kv_cache), joined, own)


def _attention(target: Model) -> GroupedAttention:
    """Return the attention of *target*'s last layer that has grouped one, without its window."""
    for layer in reversed(target.stack):
        if isinstance(layer.attention, GroupedAttention):
            return layer.attention.model_copy(update={"window": None})
    raise ConfigError(f"no EAGLE head is known for the attention of {target.name}; mtp may be what it has")


def _width(target: Model) -> int:
    """Return the width of a dense feed-forward part; with routed experts, of all that one token passes."""
    mlp = next(layer.mlp for layer in reversed(target.stack) if isinstance(layer.mlp, (DenseMlp, MoeMlp)))
    if isinstance(mlp, DenseMlp):
        return mlp.intermediate
    return mlp.top_k * mlp.expert_intermediate + mlp.shared_intermediate
