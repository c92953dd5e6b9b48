"""An accelerator as its kernels see it: peaks times the shares that calibration found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeVar

from sim.cost.rates import DecodeRates, ExpertRates, Factors, GemmRates, LinkRates, MemoryRates, PrefillRates, Protocol
from sim.errors import ProfileError
from sim.profiles.calibrated import SLOW_HEADS, WIDE_HEAD, Constant, ExpertConstants, GemmConstants, HardwareCalibration
from sim.profiles.hardware import Hardware, Link
from sim.profiles.quantization import bytes_per_element

__all__ = ["Accelerator"]

_WEIGHT_ONLY = ("int4", "mxfp4", "q8_0", "q4_k_m")
"""Weight types whose product runs in 16 bits: Marlin and GGUF kernels unpack them on the fly."""
_MULTIPLIES_IN = {"fp32": "tf32", "fp8_block": "fp8", "nvfp4": "fp4"}
_SIXTEEN_BITS = ("bf16", "fp16")
_SIMILAR = {"fp8": "fp8_block", "fp8_block": "fp8", "int8": "fp8"}
"""Type whose constants serve where a type has none."""
_TILE = 128
_PROCESSORS = 128
"""Assumed where a profile does not say into how many units the accelerator is divided."""

_Constants = TypeVar("_Constants")


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator with the constants of its kernels.

    Attributes
    ----------
    kernels
        Engine whose own constants win over the common ones.
    fp8_inputs_fused
        Inputs of fp8 products come in fp8. Benchmarks of such products find their scales and quantise them first.
    """

    hardware: Hardware
    calibration: HardwareCalibration
    factors: Factors = field(default_factory=Factors)
    kernels: str = ""
    fp8_inputs_fused: bool = False

    def gemm(self, weights: str, activations: str | None = None) -> GemmRates:
        """Return the matrix product for a weight type.

        A type that the hardware cannot multiply, one that is only a way to store weights, and any type with
        16-bit *activations* run as a 16-bit product that reads fewer bytes. A type without constants of its
        own takes those of a similar one. Where inputs come in fp8, the launch is that of a product that quantises none.
        """
        multiplied = self._multiplied(weights, activations)
        own = weights if multiplied == _MULTIPLIES_IN.get(weights, weights) else "bf16"
        constants: GemmConstants = self._of(self.calibration.gemm, own)
        peak, memory_bytes_per_s = self._peak(multiplied), self.hardware.memory_bytes_per_s
        passes = 0.0 if multiplied in (*_SIXTEEN_BITS, "tf32") else constants.quantise.value
        launch_s = constants.launch_s.value
        if self.fp8_inputs_fused and own == "fp8":
            passes, launch_s = 0.0, min(launch_s, self.calibration.gemm["bf16"].launch_s.value)
        return GemmRates(
            flops_per_s=peak * constants.compute.value * self.factors.compute,
            bytes_per_s=self._memory(constants.memory.value),
            depth_s=constants.depth.value * 2.0 * _TILE * _TILE * self.processors / peak,
            prologue=constants.prologue.value,
            sharpness=constants.sharpness.value,
            launch_s=self._launch(launch_s),
            quantise_s=passes * 3.0 / memory_bytes_per_s,
            weight_bytes=bytes_per_element(weights),
        )

    def experts(self, weights: str, activations: str | None = None) -> ExpertRates:
        """Return the grouped matrix products of routed experts.

        Types are chosen as for `gemm`, but for kernels that multiply these weights with these *activations* and have
        constants under both names, ``mxfp4+fp8``.
        """
        table, multiplied = self.calibration.experts, self._multiplied(weights, activations)
        own = weights if multiplied == _MULTIPLIES_IN.get(weights, weights) or weights in _WEIGHT_ONLY else "bf16"
        both = f"{weights}+{activations}"
        if activations is not None and not table.keys().isdisjoint((both, f"{both}@{self.kernels}")):
            own, multiplied = both, activations
        constants: ExpertConstants = self._of(table, own)
        element_s = 2.0 / self.hardware.memory_bytes_per_s
        return ExpertRates(
            flops_per_s=self._peak(multiplied) * constants.compute.value * self.factors.compute,
            bytes_per_s=self._memory(constants.memory.value),
            sharpness=constants.sharpness.value,
            launch_s=self._launch(constants.launch_s.value),
            row_s=constants.row.value * element_s,
            sort_s=constants.sort.value * 2.0 * element_s,
            weight_bytes=bytes_per_element(weights),
            depth_columns=constants.depth.value * _TILE * self.processors,
            expert_s=self._launch(constants.expert_s.value),
            spread_s=self._launch(constants.spread_s.value),
            routing_s=self._launch(constants.routing_s.value),
        )

    def decode(self, kv: str, head_dim: int = 0, heads: int = 0, *, latent: bool = False) -> DecodeRates:
        """Return decode attention of some query *heads* over a cache of type *kv*; 8-bit integers as 8-bit floats."""
        table = self.calibration.latent_decode if latent else self.calibration.decode
        constants = self._of(table, "fp8" if kv == "int8" else kv)
        slower = constants.at_32_heads.value if latent and heads == SLOW_HEADS else _slower(constants.wide, head_dim)
        return DecodeRates(
            flops_per_s=self._peak(self._sixteen_bits) * constants.compute.value * self.factors.compute,
            bytes_per_s=self._memory(constants.memory.value) / slower,
            tile_s=constants.tile_s.value / self.processors,
            launch_s=self._launch(constants.launch_s.value),
            head_s=constants.head_s.value / self.processors,
            walk_s=constants.walk_s.value,
            ramp=constants.ramp.value,
            ramp_s=constants.ramp_s.value / self.factors.memory,
        )

    def prefill(self, kv: str, head_dim: int = 0, *, latent: bool = False) -> PrefillRates:
        """Return prefill attention over a cache of type *kv*; 8-bit integers as 8-bit floats."""
        table = self.calibration.latent_prefill if latent else self.calibration.prefill
        constants = self._of(table, "fp8" if kv == "int8" else kv)
        flops_per_s = self._peak(self._sixteen_bits) * constants.compute.value * self.factors.compute
        flops_per_s /= _slower(constants.wide, head_dim)
        return PrefillRates(
            flops_per_s=flops_per_s,
            bytes_per_s=self._memory(constants.memory.value),
            depth_s=constants.depth.value * 2.0 * _TILE * self.processors / flops_per_s,
            tile_s=constants.tile_s.value / self.processors,
            sharpness=constants.sharpness.value,
            launch_s=self._launch(constants.launch_s.value),
            write_s=constants.write.value / self.hardware.memory_bytes_per_s,
            exponent=constants.exponent.value,
            edge=constants.edge.value,
        )

    def elementwise(self) -> MemoryRates:
        """Return the kernels that only move bytes."""
        constants = self.calibration.elementwise
        assert constants is not None  # `HardwareCalibration.resolve` has filled it
        return MemoryRates(self._memory(constants.memory.value), self._launch(constants.launch_s.value))

    def link(self, ranks: int) -> LinkRates:
        """Return the all-reduce over *ranks*.

        A number between two measured ones takes the constants of the larger, one above all those of the largest.
        """
        table = self.calibration.bus_all_reduce if self._on_bus(ranks) else self.calibration.all_reduce
        link_bytes_per_s = self.link_bytes_per_s(ranks)
        constants = table[min((n for n in table if n >= ranks), default=max(table))]

        def protocol(below_bytes: float, link: Constant, launch_s: Constant) -> Protocol:
            return Protocol(below_bytes, link.value * link_bytes_per_s, self._launch(launch_s.value))

        return LinkRates(
            protocol(constants.small_below_bytes.value, constants.small_link, constants.small_launch_s),
            protocol(constants.medium_below_bytes.value, constants.medium_link, constants.medium_launch_s),
            protocol(math.inf, constants.large_link, constants.large_launch_s),
        )

    @property
    def processors(self) -> int:
        """Units into which it is divided."""
        return self.hardware.processors or _PROCESSORS

    @property
    def _sixteen_bits(self) -> str:
        return next((dtype for dtype in (*_SIXTEEN_BITS, "fp32") if dtype in self.hardware.peak_flops), "bf16")

    def _multiplied(self, weights: str, activations: str | None) -> str:
        """Return the data type in which a product with these weights runs."""
        multiplied = _MULTIPLIES_IN.get(weights, weights)
        stored_only = weights in _WEIGHT_ONLY or activations in _SIXTEEN_BITS or weights in _SIXTEEN_BITS
        return self._sixteen_bits if stored_only or multiplied not in self.hardware.peak_flops else multiplied

    def _of(self, table: dict[str, _Constants], dtype: str) -> _Constants:
        names = (f"{dtype}@{self.kernels}", dtype, _SIMILAR.get(dtype, "bf16"), "bf16")
        return next(table[name] for name in names if name in table)

    def _peak(self, dtype: str) -> float:
        peaks: dict[str, float] = {str(known): rate for known, rate in self.hardware.peak_flops.items()}
        if dtype not in peaks:
            raise ProfileError(f"{self.hardware.name}: peak_flops has no {dtype}; it has {', '.join(peaks)}")
        return peaks[dtype]

    def _memory(self, share: float) -> float:
        return self.hardware.memory_bytes_per_s * share * self.factors.memory

    def _launch(self, seconds: float) -> float:
        return seconds * self.factors.launch

    def _linked(self, ranks: int) -> Link | None:
        """Return the accelerators' own link if it joins *ranks*."""
        link = self.hardware.interconnect
        return link if link is not None and ranks <= self.hardware.joined else None

    def _on_bus(self, ranks: int) -> bool:
        """Tell whether *ranks* of a node meet on PCIe, unless they do so in the benchmark of their own constants."""
        on_bus = self._linked(ranks) is None and ranks <= self.hardware.gpus_per_node
        return on_bus and (self.hardware.interconnect is not None or not self.hardware.peer_to_peer)

    def link_bytes_per_s(self, ranks: int) -> float:
        """Return one direction of the slowest way that joins *ranks*: own link, PCIe of a node, network."""
        hardware, link = self.hardware, self._linked(ranks)
        if link is not None:
            return link.bytes_per_s
        inside = ranks <= hardware.gpus_per_node
        rate = hardware.pcie_bytes_per_s if inside else hardware.nic_bytes_per_s
        if rate is None:
            kind = "PCIe" if inside else "network"
            raise ProfileError(f"{hardware.name} has no {kind} bandwidth, so {ranks} ranks cannot be joined")
        return rate


def _slower(wide: Constant, head_dim: int) -> float:
    return wide.value if head_dim >= WIDE_HEAD else 1.0
