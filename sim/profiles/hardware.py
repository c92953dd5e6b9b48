"""An accelerator: memory, bandwidth, dense peak rates, links and power."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.profiles.base import Profile
from sim.section import Section
from sim.units import Bytes, BytesPerSecond, FlopsPerSecond

__all__ = ["Hardware", "Link", "PeakDtype"]

PeakDtype = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4"]


class Link(Section):
    """A way between accelerators that is faster than PCIe."""

    kind: str = Field(description="NVLink4, xGMI full mesh, ICI 2D torus, ...")
    bytes_per_s: BytesPerSecond = Field(
        gt=0, description="One direction, of one accelerator, all its lanes together [B/s]."
    )
    joins: int | None = Field(
        None,
        ge=2,
        description="Accelerators that it joins: 2 by a bridge, 72 in an NVL72 rack; missing: a node's.",
    )


class Hardware(Profile):
    """One accelerator; all rates are dense peaks of the vendor, without structured sparsity."""

    vendor: str
    form_factor: str = ""
    year: int | None = None
    memory_bytes: Bytes = Field(
        gt=0, description="Capacity on the label; vendors print GB where the parts have GiB [B]."
    )
    visible_memory_bytes: Bytes = Field(
        gt=0,
        description="What the framework reports as total memory; differs a little by driver and ECC [B].",
    )
    memory_bytes_per_s: BytesPerSecond = Field(gt=0, description="Peak memory bandwidth [B/s].")
    peak_flops: dict[PeakDtype, FlopsPerSecond] = Field(
        min_length=1,
        description="Dense peak rate by data type of the multiplication, accumulated in 32 bits; "
        "what is missing is not supported [FLOP/s, int8: OP/s].",
    )
    processors: int | None = Field(None, gt=0, description="Streaming multiprocessors, compute units or cores.")
    l2_bytes: Bytes | None = Field(None, gt=0, description="Last-level cache [B].")
    tdp_w: float | None = Field(None, gt=0, description="Board power limit [W]; missing: not published.")
    interconnect: Link | None = Field(None, description="Between accelerators; missing: only PCIe.")
    pcie_bytes_per_s: BytesPerSecond | None = Field(None, gt=0, description="PCIe, one direction [B/s].")
    peer_to_peer: bool = Field(True, description="Accelerators reach each other's memory over PCIe.")
    nic_bytes_per_s: BytesPerSecond | None = Field(
        None, gt=0, description="Typical network share of one accelerator, one direction [B/s]."
    )
    gpus_per_node: int = Field(8, ge=1, description="Accelerators of a typical node.")

    @property
    def joined(self) -> int:
        """Accelerators that an own link can join: those of a node, or of a whole rack."""
        return (self.interconnect.joins if self.interconnect is not None else None) or self.gpus_per_node

    def over_pcie(self) -> Hardware:
        """Return it without a bridge, so that all-reduces take the calibrated ones of PCIe (`bus_all_reduce`).

        Those are of links/host only for cards that never have peer-to-peer access, whatever is set here.
        """
        return self.model_copy(update={"interconnect": None, "peer_to_peer": False})
