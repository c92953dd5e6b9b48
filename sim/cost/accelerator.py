"""An accelerator as its kernels see it: peaks times the shares that calibration found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from sim.errors import ProfileError
from sim.profiles.calibrated import (
    AllReduceConstants,
    DecodeConstants,
    HardwareCalibration,

    RooflineConstants,
)
from sim.profiles.hardware import Hardware
from sim.profiles.quantization import bytes_per_element

__all__ = ["Accelerator", "Factors", "GemmType", "Rates", "WEIGHT_ONLY"]

WEIGHT_ONLY = ("int4", "mxfp4", "q8_0", "q4_k_m")
"""Weight types whose product runs in 16 bits: Marlin and GGUF kernels unpack them on the fly."""
_MULTIPLIES_IN = {"fp32": "tf32", "fp8_block": "fp8", "nvfp4": "fp4"}
_SIXTEEN_BITS = ("bf16", "fp16")

_Table = TypeVar("_Table")


class Factors(NamedTuple):
    """What an engine's kernels reach relative to the calibrated ones; 1 without evidence."""

    compute: float = 1.0
    memory: float = 1.0
    launch: float = 1.0


class Rates(NamedTuple):
    """What one kernel family reaches."""

    flops_per_s: float
    bytes_per_s: float
    launch_s: float
    sharpness: float


class GemmType(NamedTuple):
    """A matrix product of one weight type."""

    rates: Rates
    weight_bytes: float
    quantise_bytes: float


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator with the constants of its kernels."""

    hardware: Hardware
    calibration: HardwareCalibration
    factors: Factors = field(default_factory=Factors)

    def gemm(self, weights: str, activations: str | None = None) -> GemmType:
        """Return the matrix product for a weight type.

        A type that the hardware cannot multiply, one that is only a way to store weights, and any type with 16-bit
        *activations* run as a 16-bit product that reads fewer bytes. A type without constants takes those of bf16.
        """
        table, peaks = self.calibration.gemm, self.hardware.peak_flops
        multiplied = _MULTIPLIES_IN.get(weights, weights)
        if weights in WEIGHT_ONLY or activations in _SIXTEEN_BITS or multiplied not in peaks:
            multiplied, weights_as = self._sixteen_bits(), "bf16"
        else:
            weights_as = weights
        constants = table.get(weights_as, table["bf16"])
        quantise_bytes = 0.0 if multiplied in (*_SIXTEEN_BITS, "tf32") else 3.0 * constants.quantise.value
        return GemmType(self._rates(constants, multiplied), bytes_per_element(weights), quantise_bytes)

    def experts(self, weights: str, activations: str | None = None) -> GemmType:
        """Return the grouped matrix product of routed experts, by the same rules as `gemm`."""
        table, plain = self.calibration.experts, self.gemm(weights, activations)
        multiplied = _MULTIPLIES_IN.get(weights, weights)
        native = multiplied in self.hardware.peak_flops and activations not in _SIXTEEN_BITS
        if weights in table and (native or weights in WEIGHT_ONLY):
            multiplied = self._sixteen_bits() if weights in WEIGHT_ONLY else multiplied
            return plain._replace(rates=self._rates(table[weights], multiplied))
        return plain._replace(rates=self._rates(table["bf16"], self._sixteen_bits()))

    def decode(self, kv: str, *, latent: bool = False) -> Rates:
        """Return the rates of decode attention over a cache of type *kv*."""
        constants = _by_kv(self.calibration.latent_decode if latent else self.calibration.decode, kv)
        return self._rates(constants, self._sixteen_bits())

    def prefill(self, kv: str, *, latent: bool = False) -> tuple[Rates, float]:
        """Return the rates of prefill attention over a cache of type *kv*, and its wave constant."""
        constants = _by_kv(self.calibration.latent_prefill if latent else self.calibration.prefill, kv)
        return self._rates(constants, self._sixteen_bits()), constants.wave.value

    def elementwise(self) -> Rates:
        """Return the rates of memory-bound kernels."""
        constants = self.calibration.elementwise
        return Rates(1.0, self._memory(constants.memory.value), self._launch(constants.launch_s.value), 1.0)

    def link(self, ranks: int) -> tuple[AllReduceConstants, float]:
        """Return the all-reduce constants for *ranks*, and the bytes a second of one direction of one accelerator's link.

        A number of ranks between two measured ones takes the constants of the larger; above the largest, the largest.
        """
        table = self.calibration.all_reduce
        measured = min((n for n in table if n >= ranks), default=max(table))
        return table[measured], self._link_bytes_per_s(ranks)

    def _link_bytes_per_s(self, ranks: int) -> float:
        hardware = self.hardware
        inside = hardware.interconnect.bytes_per_s if hardware.interconnect else hardware.pcie_bytes_per_s
        rate = inside if ranks <= hardware.gpus_per_node else hardware.nic_bytes_per_s
        if rate is None:
            kind = "interconnect" if ranks <= hardware.gpus_per_node else "network"
            raise ProfileError(f"{hardware.name} has no {kind} to join {ranks} ranks: give its bytes per second")
        return rate

    def _sixteen_bits(self) -> str:
        return next((dtype for dtype in (*_SIXTEEN_BITS, "fp32") if dtype in self.hardware.peak_flops), "bf16")

    def _memory(self, share: float) -> float:
        return self.hardware.memory_bytes_per_s * share * self.factors.memory

    def _launch(self, seconds: float) -> float:
        return seconds * self.factors.launch

    def _rates(self, constants: RooflineConstants | DecodeConstants, multiplied: str) -> Rates:
        peaks: dict[str, float] = dict(self.hardware.peak_flops)
        if multiplied not in peaks:
            raise ProfileError(f"{self.hardware.name} has no peak_flops for {multiplied}; it has {', '.join(peaks)}")
        return Rates(
            peaks[multiplied] * constants.compute.value * self.factors.compute,
            self._memory(constants.memory.value),
            self._launch(constants.launch_s.value),
            constants.sharpness.value if isinstance(constants, RooflineConstants) else 1.0,
        )


def _by_kv(table: dict[str, _Table], kv: str) -> _Table:
    return table["fp8" if kv in ("fp8", "int8") and "fp8" in table else "bf16"]
