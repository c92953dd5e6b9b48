"""Calibrated profiles: constants fitted to measurements, each with its error, bounds and origin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sim.profiles.base import Profile

__all__ = [
    "AllReduceConstants",
    "Constant",
    "DecodeConstants",
    "ElementwiseConstants",
    "Fit",
    "GemmConstants",
    "HardwareCalibration",
    "PrefillConstants",
    "RooflineConstants",
]

_BY_TYPE = ("gemm", "decode", "prefill", "latent_decode", "latent_prefill", "experts")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Constant(_Part):
    """One fitted or fixed number."""

    value: float
    stderr: float = Field(0.0, ge=0, description="Standard error, in the unit of the value; 0: not known.")
    bounds: tuple[float, float] = Field(description="Range that the fit was allowed.")
    status: Literal["fitted", "fixed"] = "fitted"

    @model_validator(mode="after")
    def _inside(self) -> Constant:
        low, high = self.bounds
        if not low <= self.value <= high:
            raise ValueError(f"value {self.value:g} is outside of its bounds [{low:g}, {high:g}]")
        return self


class Fit(_Part):
    """Where the constants of one operation come from, and how well they predict shapes that the fit did not see."""

    source: str = Field(description="Table, runs or citation.")
    sha256: str = Field("", description="Hash of the table; empty for a citation.")
    rows: int = Field(0, ge=0, description="Rows fitted.")
    held_out_rows: int = Field(0, ge=0, description="Rows of other shapes, only compared.")
    median_error: float | None = Field(None, ge=0, description="Median of |predicted/measured - 1| on held-out rows.")
    p90_error: float | None = Field(None, ge=0, description="90th percentile of the same.")


class RooflineConstants(_Part):
    """A kernel as a smooth roofline: ``(compute^p + memory^p)^(1/p) + launch``."""

    compute: Constant = Field(description="Share of the peak rate of its data type that is reached.")
    memory: Constant = Field(description="Share of the peak memory bandwidth that is reached.")
    sharpness: Constant = Field(description="p of the norm: large is a sharp roofline, 1 adds the two times.")
    launch_s: Constant = Field(description="Fixed time of the kernel inside a CUDA graph [s].")
    fit: Fit


class GemmConstants(RooflineConstants):
    """A matrix product with weights read once."""

    quantise: Constant = Field(description="Passes of 3 bytes a quantised input element that the activations cost.")


class PrefillConstants(RooflineConstants):
    """Attention of a prompt chunk over itself and its past."""

    wave: Constant = Field(description="Time of the longest tile of 128 queries, as a multiple of one processor's share.")


class DecodeConstants(_Part):
    """Attention of one new token a sequence: linear in the tokens attended."""

    compute: Constant = Field(description="Share of the bf16 peak rate that is reached.")
    memory: Constant = Field(description="Share of the peak memory bandwidth that is reached.")
    launch_s: Constant = Field(description="Fixed time of the kernel inside a CUDA graph [s].")
    fit: Fit


class AllReduceConstants(_Part):
    """All-reduce over a number of ranks: ``launch * (1 + (bus bytes / (rate * launch))^p)^(1/p)``."""

    link: Constant = Field(description="Bus bandwidth as a share of one direction of the link of one accelerator.")
    sharpness: Constant = Field(description="p of the norm between the fixed time and the bytes.")
    launch_s: Constant = Field(description="Time of the smallest message [s].")
    fit: Fit


class ElementwiseConstants(_Part):
    """Norms, rotary embedding, residuals, activation functions."""

    memory: Constant = Field(description="Share of the peak memory bandwidth that is reached.")
    launch_s: Constant = Field(description="Fixed time of one kernel inside a CUDA graph [s].")
    fit: Fit


class HardwareCalibration(Profile):
    """What the kernels of one accelerator reach of its peaks, by operation and data type.

    An accelerator without measurements names its nearest relative instead: shares of peaks and fixed times
    carry over as they are, and rates follow from the accelerator's own peaks. How far such a transfer is off
    is known from accelerators that have measurements of their own: `error_factor`.
    """

    aliases: tuple[str, ...] = ()
    transferred_from: str | None = Field(None, description="The relative whose constants hold; missing: its own.")
    error_factor: float = Field(1.0, ge=1, description="How many times wider its errors are than the fits say.")
    gemm: dict[str, GemmConstants] = Field({}, description="Linear layers, by weight type.")
    decode: dict[str, DecodeConstants] = Field({}, description="Grouped attention, by type of the KV cache.")
    prefill: dict[str, PrefillConstants] = Field({}, description="Grouped attention, by type of the KV cache.")
    latent_decode: dict[str, DecodeConstants] = Field({}, description="Latent attention (MLA), by KV type.")
    latent_prefill: dict[str, PrefillConstants] = Field({}, description="Latent attention (MLA), by KV type.")
    experts: dict[str, RooflineConstants] = Field({}, description="Products of routed experts, by weight type.")
    all_reduce: dict[int, AllReduceConstants] = Field({}, description="By number of ranks.")
    elementwise: ElementwiseConstants | None = None

    @model_validator(mode="after")
    def _complete(self) -> HardwareCalibration:
        by_type = {name: getattr(self, name) for name in _BY_TYPE}
        if self.transferred_from is not None:
            given = [name for name, table in by_type.items() if table]
            if given or self.all_reduce or self.elementwise:
                raise ValueError("a calibration is either its own or transferred_from another, not both")
            return self
        for name, table in by_type.items():
            if "bf16" not in table:
                raise ValueError(f"{name} has no bf16, to which other data types fall back")
        if not self.all_reduce or not self.elementwise:
            raise ValueError("all_reduce and elementwise are needed")
        return self

    def resolve(self, load: Callable[[str], HardwareCalibration]) -> HardwareCalibration:
        """Return a calibration with constants: this one, or that of the relative, found by *load*, as this one's."""
        if self.transferred_from is None:
            return self
        relative = load(self.transferred_from).resolve(load)
        kept = {name: getattr(self, name) for name in ("name", "aliases", "sources", "notes", "transferred_from")}
        return relative.model_copy(update={**kept, "error_factor": self.error_factor * relative.error_factor})
