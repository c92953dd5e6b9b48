"""Calibrated profiles: constants fitted to measurements, each with its error, bounds and origin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field, model_validator

from sim.profiles.base import Profile
from sim.section import Section

__all__ = [
    "AllReduceConstants",
    "Constant",
    "DecodeConstants",
    "ElementwiseConstants",
    "ExpertConstants",
    "Fit",
    "GemmConstants",
    "HardwareCalibration",
    "PrefillConstants",
    "SLOW_HEADS",
    "WIDE_HEAD",
]

_BY_TYPE = ("gemm", "decode", "prefill", "latent_decode", "latent_prefill", "experts")
_BY_RANKS = ("all_reduce", "bus_all_reduce")
WIDE_HEAD = 256
"""Head dimension from which kernels of attention have smaller tiles."""
SLOW_HEADS = 32
"""Query heads with which kernels of latent attention take longer on Blackwell than with fewer and with more."""


class Constant(Section):
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


class Fit(Section):
    """Where constants come from, and how well they predict shapes that their fit did not see."""

    source: str = Field(description="Table and rows, or citation.")
    sha256: str = Field("", description="Hash of the table; empty for a citation.")
    rows: int = Field(0, ge=0, description="Shapes fitted.")
    excluded: int = Field(0, ge=0, description="Rows left out by the rules of the fit.")
    median_error: float | None = Field(None, ge=0, description="Median of |predicted/measured - 1|, held out.")
    p90_error: float | None = Field(None, ge=0, description="90th percentile of the same.")
    correlations: dict[str, dict[str, float]] = Field(
        {}, description="How the errors of two constants go together, from -1 to 1; those left out: hardly."
    )
    untold: tuple[str, ...] = Field(
        (), description="Constants of which these shapes say little: the standard error is more than half of the value."
    )


class GemmConstants(Section):
    """A matrix product with weights read once; the terms are those of `sim.cost.gemm`."""

    compute: Constant = Field(description="Share of the peak rate of its data type that is reached.")
    memory: Constant = Field(description="Share of the peak memory bandwidth that is reached.")
    depth: Constant = Field(description="Walk of a 128 x 128 tile along k, in times of one processor at peak.")
    prologue: Constant = Field(description="Length along k that filling and draining a tile costs.")
    sharpness: Constant = Field(description="p of the norm: large is a sharp roofline, 1 adds the times.")
    launch_s: Constant = Field(description="Fixed time of the kernel inside a CUDA graph [s].")
    quantise: Constant = Field(description="Passes of 3 bytes an input element to quantise activations.")
    fit: Fit


_NONE = Constant(value=0.0, bounds=(0.0, 0.0), status="fixed")
_ONE = Constant(value=1.0, bounds=(1.0, 1.0), status="fixed")


class DecodeConstants(Section):
    """Attention of one new token a sequence, linear in the tokens attended."""

    compute: Constant = Field(description="Share of the 16-bit peak rate that is reached.")
    memory: Constant = Field(description="Share of the peak memory bandwidth that is reached.")
    tile_s: Constant = Field(description="Time of one KV head of one sequence on one processor [s].")
    launch_s: Constant = Field(description="Fixed time of the kernel inside a CUDA graph [s].")
    resident_share: Constant = Field(
        description="Share of the last-level cache below which the benchmark's KV stays in it. No serving run "
        "does this, since weights pass between two steps; it only keeps `memory` that of the memory."
    )
    resident_memory: Constant = Field(description="Bandwidth from that cache, as a share of the memory's peak.")
    wide: Constant = Field(_ONE, description="Time of a byte with heads of 256 over that with narrower ones.")
    head_s: Constant = Field(_NONE, description="Time of one query head of one sequence on one processor [s].")
    walk_s: Constant = Field(
        _NONE, description="Time of walking along one token of a sequence, as far as processors do not share it [s]."
    )
    ramp: Constant = Field(
        _NONE, description="What a byte takes more, as a share, before the kernel reads at its full rate: see `ramp_s`."
    )
    ramp_s: Constant = Field(_NONE, description="Most that is lost before the kernel reads at its full rate [s].")
    at_32_heads: Constant = Field(
        _ONE, description="Time of a byte of a latent with 32 query heads a rank, for which there are other kernels."
    )
    fit: Fit


class PrefillConstants(Section):
    """Attention of prompt chunks over themselves and their past."""

    compute: Constant = Field(description="Share of the 16-bit peak rate that is reached.")
    memory: Constant = Field(description="Share of the peak memory bandwidth that is reached.")
    depth: Constant = Field(description="Walk of the longest tile, in times of one processor at that rate.")
    tile_s: Constant = Field(description="Set-up of one tile of 128 queries of a head on one processor [s].")
    sharpness: Constant = Field(description="p of the norm: large is a sharp roofline, 1 adds the times.")
    launch_s: Constant = Field(description="Fixed time of the kernel inside a CUDA graph [s].")
    write: Constant = Field(description="Passes over the new 16-bit keys and values, to write them to the cache.")
    exponent: Constant = Field(
        _NONE,
        description="The exponential of a query-key pair, as the width of key and value whose products take as long. "
        "With 16 exponentials a clock on each processor, beside its products of 16 bits: 32 on Ada, 128 on Hopper, "
        "256 on B200; less where they overlap.",
    )
    edge: Constant = Field(
        _NONE,
        description="Keys that a query computes in vain at each end of what it sees, for tiles are whole; windows "
        "have two ends.",
    )
    wide: Constant = Field(_ONE, description="Time of an operation with heads of 256 over that with narrower ones.")
    resident_share: Constant = Field(
        _ONE,
        description="Share of the last-level cache below which what the benchmark reads and writes again and again "
        "stays in it; the simulation has it all come from the memory.",
    )
    resident_time: Constant = Field(_ONE, description="Time of a byte in that cache over that of one in the memory.")
    fit: Fit


class ExpertConstants(Section):
    """The grouped products of routed experts; the terms are those of `sim.cost.moe`."""

    compute: Constant = Field(description="Share of the peak rate of its data type that is reached.")
    memory: Constant = Field(description="Share of the peak memory bandwidth that is reached.")
    sharpness: Constant = Field(description="p of the norm: large is a sharp roofline, 1 adds the times.")
    launch_s: Constant = Field(description="Fixed time of all its kernels inside a CUDA graph [s].")
    row: Constant = Field(description="Passes over the 16-bit activations of the rank's own rows.")
    sort: Constant = Field(description="Passes over the 16-bit inputs of the rows of all ranks, in and out.")
    depth: Constant = Field(_NONE, description="Tiles of 128 columns that each processor reads before it is busy.")
    expert_s: Constant = Field(_NONE, description="Fixed time of each expert that is touched [s].")
    spread_s: Constant = Field(_NONE, description="Fixed time more where experts are spread over ranks [s].")
    routing_s: Constant = Field(_NONE, description="Fixed time more of sorting many tokens; half of it at 16 [s].")
    fit: Fit


class AllReduceConstants(Section):
    """All-reduce over a number of ranks, by three algorithms after the size of the message.

    Each is ``launch + 2 (n-1)/n bytes / (link share * link rate)``. Engines take a kernel of their own that sends
    everything at once, one that sends shares, or the vendor's library.
    """

    small_below_bytes: Constant = Field(description="Messages below this size go by the first algorithm [B].")
    small_link: Constant = Field(description="One-shot: share of one direction of one accelerator's link.")
    small_launch_s: Constant = Field(description="One-shot: fixed time inside a CUDA graph [s].")
    medium_below_bytes: Constant = Field(description="Messages from the first size to below this one [B].")
    medium_link: Constant = Field(description="Two-shot: share of the link.")
    medium_launch_s: Constant = Field(description="Two-shot: fixed time [s].")
    large_link: Constant = Field(description="The vendor's library: share of the link.")
    large_launch_s: Constant = Field(description="The vendor's library: fixed time [s].")
    fit: Fit


class ElementwiseConstants(Section):
    """Norms, rotary embedding, residuals, activation functions."""

    memory: Constant = Field(description="Share of the peak memory bandwidth that is reached.")
    launch_s: Constant = Field(description="Fixed time of one kernel inside a CUDA graph [s].")
    fit: Fit


class HardwareCalibration(Profile):
    """What the kernels of one accelerator reach of its peaks, by operation and data type.

    A key ``fp8`` holds for every engine, ``fp8@tensorrt-llm`` for the kernels of that one.

    What of an accelerator was not measured its nearest relative gives: shares of peaks and fixed times carry
    over as they are, and rates follow from the accelerator's own peaks. How far such a transfer is off is known
    from accelerators that have measurements of their own: `error_factor`.
    """

    aliases: tuple[str, ...] = ()
    transferred_from: str | None = Field(None, description="The relative whose constants hold where it has no own.")
    error_factor: float = Field(1.0, ge=1, description="How many times wider its errors are than the fits say.")
    gemm: dict[str, GemmConstants] = Field({}, description="Linear layers, by weight type.")
    decode: dict[str, DecodeConstants] = Field({}, description="Grouped attention, by type of the KV cache.")
    prefill: dict[str, PrefillConstants] = Field({}, description="Grouped attention, by type of the KV cache.")
    latent_decode: dict[str, DecodeConstants] = Field({}, description="Latent attention (MLA), by KV type.")
    latent_prefill: dict[str, PrefillConstants] = Field({}, description="Latent attention (MLA), by KV type.")
    experts: dict[str, ExpertConstants] = Field({}, description="Products of routed experts, by weight type.")
    all_reduce: dict[int, AllReduceConstants] = Field({}, description="By number of ranks, over its own link if any.")
    bus_all_reduce: dict[int, AllReduceConstants] = Field(
        {}, description="The same over PCIe; missing: links/pcie or, without peer-to-peer access, links/host."
    )
    elementwise: ElementwiseConstants | None = None

    @model_validator(mode="after")
    def _complete(self) -> HardwareCalibration:
        tables = {name: getattr(self, name) for name in _BY_TYPE}
        if self.transferred_from is not None:
            return self
        missing = [name for name, table in tables.items() if "bf16" not in table]
        if missing:
            raise ValueError(f"no bf16, to which other data types fall back, in {', '.join(missing)}")
        if not self.all_reduce or self.elementwise is None:
            raise ValueError("all_reduce and elementwise are needed")
        return self

    def resolve(self, load: Callable[[str], HardwareCalibration]) -> HardwareCalibration:
        """Return this calibration with constants: its own, and where it has none those of the relative *load* finds."""
        if self.transferred_from is None:
            return self
        relative = load(self.transferred_from)
        own = {name: getattr(self, name) for name in ("name", "aliases", "sources", "notes", "transferred_from")}
        tables = {name: getattr(relative, name) | getattr(self, name) for name in (*_BY_TYPE, *_BY_RANKS)}
        scalars = {
            "error_factor": self.error_factor * relative.error_factor,
            "elementwise": self.elementwise or relative.elementwise,
        }
        return relative.model_copy(update=own | tables | scalars)
