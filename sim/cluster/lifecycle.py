"""The section ``lifecycle:`` of an experiment: how replicas start and stop, and how long requests wait for one."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from sim.section import Section
from sim.units import BytesPerSecond, Seconds

__all__ = ["Lifecycle"]

_PARTS = {"provisioning_s", "storage_bandwidth", "engine_start_s", "warm_up_s"}


class Lifecycle(Section):
    """How a replica comes and goes.

    A start takes what it takes to get the node, to read the weights, to start the engine and to warm it up. By default
    the node is there already, and the rest is as published: vLLM's start without weights to speak of (OPT-125M) took
    25 s, and with a 27B model in FP8 on two accelerators 72 s (er0080/vllm-benchmarking, hardware-verification.md), of
    which 16 s are the weights at the 1.67 GB/s of a stock loader (84 s for 140 GB, ServerlessLLM, OSDI 2024).
    """

    cold_start_s: Seconds | None = Field(
        None, ge=0, description="The whole of a start, instead of the sum of its parts [s]."
    )
    provisioning_s: Seconds = Field(
        0.0, ge=0, description="Until a node with the image is there; in a cloud minutes [s]."
    )
    storage_bandwidth: BytesPerSecond = Field(
        1.67e9, gt=0, description="At which a replica reads its weights, all ranks together [B/s]."
    )
    engine_start_s: Seconds = Field(25.0, ge=0, description="Start of the engine's processes [s].")
    warm_up_s: Seconds = Field(31.0, ge=0, description="Compilation and capture of graphs, once weights are there [s].")
    grace_s: Seconds | None = Field(
        None,
        ge=0,
        description="A replica that drains is lost after it (30 s in Kubernetes); missing: it answers all it has [s].",
    )
    gateway_timeout_s: Seconds = Field(
        300.0,
        gt=0,
        description="Longest wait of a request while no replica is ready, as Knative's default [s].",
    )

    @model_validator(mode="after")
    def _whole_or_parts(self) -> Self:
        parts = sorted(self.model_fields_set & _PARTS)
        if self.cold_start_s is not None and parts:
            raise ValueError(f"cold_start_s is the whole of a start, so that {', '.join(parts)} would do nothing")
        return self

    def start_s(self, weight_bytes: float) -> float:
        """Return the time from the wish for a replica until it is ready [s]."""
        if self.cold_start_s is not None:
            return self.cold_start_s
        return self.provisioning_s + weight_bytes / self.storage_bandwidth + self.engine_start_s + self.warm_up_s
