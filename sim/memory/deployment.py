"""What a memory plan is made for."""

from __future__ import annotations

from dataclasses import dataclass

from sim.memory.limits import Limits
from sim.profiles.engine_memory import EngineMemory
from sim.profiles.hardware import Hardware
from sim.profiles.model import Model
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Quantization

__all__ = ["Deployment"]


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model on one replica's accelerators, under one engine version."""

    model: Model
    hardware: Hardware
    quantization: Quantization
    parallelism: Parallelism
    memory: EngineMemory
    limits: Limits

    @property
    def dtype(self) -> str:
        """Type of activations: a plain float type asked for all weights, else the model's own."""
        asked = self.quantization.weights
        return asked if asked in ("fp32", "bf16", "fp16") else self.model.dtype

    @property
    def kv_dtype(self) -> str:
        """Type of keys and values: what is asked for, else the checkpoint's, else that of activations."""
        return self.quantization.kv_cache or self.model.checkpoint.kv_cache or self.dtype
