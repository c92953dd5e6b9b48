"""Data types of a deployment: what each part of the weights, the activations and the KV cache is stored in."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.section import Section

__all__ = [
    "BITS_PER_WEIGHT",
    "PARTS",
    "WHOLE_MODEL",
    "Dtype",
    "KvDtype",
    "Part",
    "Quantization",
    "bytes_per_element",
]

Dtype = Literal[
    "fp32",
    "bf16",
    "fp16",
    "fp8",
    "fp8_block",
    "int8",
    "int4",
    "int4_g64",
    "int4_g32",
    "mxfp4",
    "nvfp4",
    "q8_0",
    "q4_k_m",
]
KvDtype = Literal["fp32", "bf16", "fp16", "fp8", "int8"]
Part = Literal["attention", "mlp", "experts", "embeddings", "head"]
PARTS: tuple[Part, ...] = ("attention", "mlp", "experts", "embeddings", "head")

BITS_PER_WEIGHT: dict[str, float] = {
    "fp32": 32,
    "bf16": 16,
    "fp16": 16,
    "fp8": 8,
    "fp8_block": 8 + 32 / (128 * 128),  # one fp32 scale a 128 x 128 block
    "int8": 8,
    "int4": 4 + 16 / 128,  # AWQ and GPTQ: one fp16 scale a group of 128 (zero points: 4 bits more a group)
    "int4_g64": 4 + 16 / 64,
    "int4_g32": 4 + 16 / 32,
    "mxfp4": 4 + 8 / 32,  # OCP MX: one 8-bit scale a block of 32
    "nvfp4": 4 + 8 / 16,  # one fp8 scale a block of 16
    "q8_0": 8.5,  # GGUF: one fp16 scale a block of 32
    "q4_k_m": 4.85,  # GGUF: mean over the mixture that llama.cpp prints for Llama models
}
"""Stored bits of one weight, scales included."""
WHOLE_MODEL: frozenset[Dtype] = frozenset({"fp32", "bf16", "fp16", "q8_0", "q4_k_m"})
"""Types that, asked for all weights, hold for embeddings and head, too; the others are for linear layers only."""


def bytes_per_element(dtype: str) -> float:
    """Return the stored size of one element of *dtype*, scales included [B]."""
    return BITS_PER_WEIGHT[dtype] / 8


class Quantization(Section):
    """Data types by part; what is left out follows the model's own checkpoint."""

    weights: Dtype | None = Field(None, description="Weights of all linear layers; missing: as the checkpoint.")
    attention: Dtype | None = Field(None, description="Weights of attention projections, instead of `weights`.")
    mlp: Dtype | None = Field(None, description="Weights of dense feed-forward parts, instead of `weights`.")
    experts: Dtype | None = Field(None, description="Weights of routed experts, instead of `weights`.")
    embeddings: Dtype | None = Field(None, description="Input embedding; missing: the checkpoint's 16-bit type.")
    head: Dtype | None = Field(None, description="Output head; missing: the checkpoint's 16-bit type.")
    activations: Dtype | None = Field(
        None, description="Inputs of the matrix products; missing: what the weights imply."
    )
    kv_cache: KvDtype | None = Field(None, description="Keys and values; missing: the engine's default for the model.")

    def of(self, part: Part) -> Dtype | None:
        """Return the data type asked for *part*; None where the checkpoint's own holds."""
        own: Dtype | None = getattr(self, part)
        return own if own is not None or part in ("embeddings", "head") else self.weights
