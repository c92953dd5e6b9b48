"""What a memory plan is made for."""

from __future__ import annotations

from dataclasses import dataclass

from sim.memory.limits import Limits
from sim.profiles.draft import Draft
from sim.profiles.engine_memory import EngineMemory
from sim.profiles.hardware import Hardware
from sim.profiles.model import Model
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Quantization

__all__ = ["Deployment", "kv_dtype_of"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model on one replica's accelerators, under one engine version, and what drafts for it."""

    model: Model
    hardware: Hardware
    quantization: Quantization
    parallelism: Parallelism
    memory: EngineMemory
    limits: Limits
    draft: Draft | None = None

    @property
    def dtype(self) -> str:
        """Type of activations: a plain float type asked for all weights, else the model's own."""
        return _dtype_of(self.model, self.quantization)

    @property
    def kv_dtype(self) -> str:
        """Type of keys and values."""
        return kv_dtype_of(self.model, self.quantization)


def kv_dtype_of(model: Model, quantization: Quantization) -> str:
    """Return the type of keys and values: what is asked for, else the checkpoint's, else that of activations."""
    return quantization.kv_cache or model.checkpoint.kv_cache or _dtype_of(model, quantization)


def _dtype_of(model: Model, quantization: Quantization) -> str:
    asked = quantization.weights
    return asked if asked in ("fp32", "bf16", "fp16") else model.dtype
