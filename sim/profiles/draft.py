"""A model that drafts for another one."""

from __future__ import annotations

from dataclasses import dataclass

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
    """

    model: Model
    quantization: Quantization
    joined_features: int
    own_params: int

    @property
    def weight_bytes(self) -> float:
        """What its weights add [B]."""
        return self.own_params * self.model.weight_bytes(self.quantization) / self.model.params

    def token_bytes(self, kv_dtype: str) -> float:
        """Return the keys and values of one token [B]."""
        return self.model.kv_bytes_per_token(kv_dtype) + self.model.kv_bytes_per_token(kv_dtype, windowed=True)
