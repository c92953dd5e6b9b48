"""A model that drafts for another one."""

from __future__ import annotations

from dataclasses import dataclass

from sim.profiles.cache import caches_of
from sim.profiles.model import Model
from sim.profiles.quantization import Quantization

__all__ = ["Draft"]


@dataclass(frozen=True, slots=True)
class Draft:
    """What drafts, token by token.

    Attributes
    ----------
    model, quantization
        Its layers and output head, and their data types.
    joined_features
        Width of what a projection brings to the hidden size before the layers (EAGLE, MTP: hidden state and token); 0
        where there is none.
    own_params
        Weights that it adds to those of the model it drafts for.
    tp
        Accelerators that share it; None: as many as share the other one.
    """

    model: Model
    quantization: Quantization
    joined_features: int
    own_params: int
    tp: int | None = None

    @property
    def weight_bytes(self) -> float:
        """What its weights add [B]."""
        return self.own_params * self.model.weight_bytes(self.quantization) / self.model.params

    def ranks(self, tp: int) -> int:
        """Return how many accelerators share it where *tp* share the other model."""
        return self.tp or tp

    def token_bytes(self, kv_dtype: str, tp: int) -> float:
        """Return what one of its `ranks` keeps of one token [B]."""
        caches = (cache for layer in self.model.stack for cache in caches_of(layer.attention))
        return sum(cache.bytes_per_token(kv_dtype, self.ranks(tp)) for cache in caches)
