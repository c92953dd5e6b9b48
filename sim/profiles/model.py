"""A model's architecture, and what follows from it: weights, and memory of a token and of a sequence."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property
from string import ascii_letters
from typing import Literal

from pydantic import Field, model_validator

from sim.profiles.base import Profile
from sim.profiles.cache import KvCache, caches_of, indexer_bytes
from sim.profiles.layers import (
    AnyAttention,
    AnyMlp,
    CompressedAttention,
    DenseMlp,
    GroupedAttention,
    Indexer,
    LatentAttention,
    Layers,
    LinearAttention,
    MoeMlp,
    NoMlp,
)
from sim.profiles.params import Component, absorbed_params, active_params, layer_params
from sim.profiles.quantization import WHOLE_MODEL, Dtype, Quantization, bytes_per_element

__all__ = [
    "KIND_LETTERS",
    "AnyAttention",
    "AnyMlp",
    "CompressedAttention",
    "DenseMlp",
    "GroupedAttention",
    "Indexer",
    "LatentAttention",
    "Layers",
    "LinearAttention",
    "Model",
    "MoeMlp",
    "NoMlp",
]


KIND_LETTERS = ascii_letters.swapcase()
"""Letters of the kinds of layers in `Model.order`: A to Z, then a to z."""


class Model(Profile):
    """A transformer as its layers; sizes in numbers of elements, and the data types of its checkpoint."""

    architecture: str = Field(description="`model_type` of its Hugging Face config.")
    hidden_size: int = Field(gt=0)
    vocab_size: int = Field(gt=0)
    max_position_embeddings: int = Field(gt=0, description="Context length that the model was made for [tokens].")
    tied_embeddings: bool = Field(description="The output head shares the embedding matrix.")
    layers: tuple[Layers, ...] = Field(
        min_length=1, max_length=len(KIND_LETTERS), description="Kinds of layers and how many there are of each."
    )
    order: str = Field(
        "",
        pattern="^[A-Za-z]*$",
        description="Kind of each layer, A for the first; missing: all of one kind, then the next.",
    )
    extra_params: int = Field(0, ge=0, description="Final norm and whatever is in no layer.")
    position_elements: int = Field(
        0,
        ge=0,
        description="Entries of the rotary tables that engines build: positions x rotary width, each different one.",
    )
    vision_params: int = Field(0, ge=0, description="Weights of the vision or audio tower and its projector, 16 bit.")
    mtp_params: int = Field(0, ge=0, description="Weights of multi-token-prediction layers, loaded only to speculate.")
    dtype: Literal["bf16", "fp16", "fp32"] = Field(
        "bf16", description="Type of what is not quantised, as engines load it."
    )
    checkpoint: Quantization = Field(Quantization(), description="Types that the checkpoint itself is quantised to.")
    checkpoint_bytes: float | None = Field(
        None, gt=0, description="All tensors of the checkpoint, where they were listed [B]."
    )

    @model_validator(mode="after")
    def _order_matches_counts(self) -> Model:
        expected = {letter: layer.count for letter, layer in zip(KIND_LETTERS, self.layers, strict=False)}
        if self.order and Counter(self.order) != Counter(expected):
            raise ValueError(f"order: has {dict(Counter(self.order))} layers by kind, where layers say {expected}")
        return self

    @property
    def num_layers(self) -> int:
        """Layers of all kinds."""
        return sum(layer.count for layer in self.layers)

    @cached_property
    def stack(self) -> tuple[Layers, ...]:
        """Every layer by itself, from the first to the last; its `count` is that of its kind."""
        if not self.order:
            return tuple(layer for layer in self.layers for _ in range(layer.count))
        kinds = dict(zip(KIND_LETTERS, self.layers, strict=False))
        return tuple(kinds[letter] for letter in self.order)

    @cached_property
    def params_by_component(self) -> dict[Component, int]:
        """Weights by the part that they belong to; `other` is norms, biases and routers. Text only, without MTP."""
        counts: Counter[Component] = Counter({"other": self.extra_params})
        for layer in self.layers:
            counts.update({part: n * layer.count for part, n in layer_params(layer, self.hidden_size).items()})
        counts["embeddings"] += self.vocab_size * self.hidden_size
        counts["head"] += 0 if self.tied_embeddings else self.vocab_size * self.hidden_size
        return dict(counts)

    def params_of(self, component: Component) -> int:
        """Return the weights of one part; a head that is tied to the embeddings has none of its own."""
        return self.params_by_component.get(component, 0)

    @property
    def params(self) -> int:
        """All weights of the language model."""
        return sum(self.params_by_component.values())

    @property
    def active_params(self) -> int:
        """Weights that one token passes, embeddings and head included."""
        outside = self.params_of("embeddings") + self.params_of("head") + self.extra_params
        return outside + sum(layer.count * active_params(layer, self.hidden_size) for layer in self.layers)

    def dtype_of(self, component: Component, quantization: Quantization | None = None) -> Dtype:
        """Return the type that *component* is stored in: what the deployment asks for, else the checkpoint's own.

        A plain float type or a GGUF mixture for all weights holds for embeddings, head and norms, too, as in engines.
        """
        asked = quantization or Quantization()
        whole = asked.weights if asked.weights in WHOLE_MODEL else None
        if component == "other":
            return whole or self.dtype
        return asked.of(component) or whole or self.checkpoint.of(component) or self.dtype

    def weight_bytes(self, quantization: Quantization | None = None, mxfp4_multiple: int = 1) -> float:
        """Return the weights of the language model on one accelerator, scales included [B].

        Exact where the checkpoint's tensors were listed and nothing else is asked for, less vision and MTP weights.

        Parameters
        ----------
        mxfp4_multiple
            The width of mxfp4 experts is rounded up to a multiple of this, as the engine's kernel wants it (vLLM: 256,
            so 2880 becomes 3072 in gpt-oss).
        """
        sizes = self.weight_bytes_by_component(quantization)
        padding = 0.0
        if self.dtype_of("experts", quantization) == "mxfp4":
            wide = math.ceil(self.hidden_size / mxfp4_multiple) * mxfp4_multiple
            padding = sizes.get("experts", 0.0) * (wide / self.hidden_size - 1)
        if self.checkpoint_bytes is None or (quantization or Quantization()) != Quantization():
            return sum(sizes.values()) + padding
        apart = self.vision_params * bytes_per_element(self.dtype) + self.mtp_params * bytes_per_element(
            self.dtype_of("experts")
        )
        return self.checkpoint_bytes - apart + padding

    def weight_bytes_by_component(self, quantization: Quantization | None = None) -> dict[Component, float]:
        """Return the weights by part, each in its own type [B]."""
        return {
            part: n * bytes_per_element(self.dtype_of(part, quantization))
            for part, n in self.params_by_component.items()
        }

    @property
    def absorbed_params(self) -> int:
        """Copies that engines make of the up-projections of latent attention, in 16 bit."""
        return sum(layer.count * absorbed_params(layer.attention) for layer in self.layers)

    def caches(self) -> dict[KvCache, int]:
        """Return the different KV caches of the layers and how many layers keep each."""
        counts: Counter[KvCache] = Counter()
        for layer in self.layers:
            counts.update(dict.fromkeys(caches_of(layer.attention), layer.count))
        return dict(counts)

    @property
    def windows(self) -> tuple[int, ...]:
        """The different attention windows, ascending [tokens]."""
        return tuple(sorted({cache.window for cache in self.caches() if cache.window}))

    def kv_bytes_per_token(self, kv_dtype: str | None = None, *, windowed: bool = False) -> float:
        """Return keys and values of one token in the layers that keep all tokens, or in those that keep a window [B].

        Grouped attention: G*(d + dv) elements a layer; latent attention: rank + rope width, the same on every rank.
        """
        chosen = {cache: n for cache, n in self.caches().items() if (cache.window is not None) == windowed}
        return sum(n * cache.bytes_per_token(kv_dtype or self.dtype) for cache, n in chosen.items())

    @property
    def index_bytes_per_token(self) -> float:
        """What the indexers of sparse attention keep of one token, beside keys and values [B]."""
        return sum(layer.count * indexer_bytes(layer.attention) for layer in self.layers)

    @property
    def state_bytes_per_sequence(self) -> float:
        """State of the linear-attention and Mamba layers; it does not grow with the context [B]."""
        linear = ((layer.count, layer.attention) for layer in self.layers)
        return sum(count * part.state_bytes for count, part in linear if isinstance(part, LinearAttention))
