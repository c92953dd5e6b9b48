"""Prompts on one pool, answers on another: who emits the first token, who is chosen when, and what may stay local."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from sim.profiles.engine import FirstToken, HandoverOrder
from sim.request import Request
from sim.section import Section
from sim.units import BytesPerSecond, Seconds

__all__ = ["Disaggregation", "LocalPrefill", "Role"]

Role = Literal["both", "prefill", "decode"]


class LocalPrefill(Section):
    """Which requests a decode replica serves alone, as it would without prefill replicas: if any of these holds.

    Source: Dynamo, "Conditional Disaggregation" (`eff_isl_threshold`; before 0.8 `max_local_prefill_length` and
    `max_prefill_queue_size`); llm-d's prefix-based decider. What the router takes to be cached there does not count.
    """

    below_tokens: int = Field(0, ge=0, description="Prompts with fewer tokens to compute [tokens].")
    queue_above: int | None = Field(
        None, ge=0, description="All, while prefill replicas have more prompts each than that; missing: never."
    )

    @property
    def asks(self) -> bool:
        """Whether any request may stay."""
        return self.below_tokens > 0 or self.queue_above is not None

    def stays(self, request: Request, prompts_each: float) -> bool:
        """Tell whether *request* stays, while each prefill replica has *prompts_each* prompts to compute."""
        crowded = self.queue_above is not None and prompts_each > self.queue_above
        return crowded or request.input_tokens - request.expected_hit_tokens < self.below_tokens


class Disaggregation(Section):
    """Prefill and decode on pools of their own; a missing value is the engine's, or the accelerator profile's.

    *first_token* is when the client gets it: ``prefill``, when the prompt is computed (DistServe, Splitwise);
    ``transfer``, when the decode replica has the KV as well (SGLang: `process_batch_result_prebuilt`); ``decode``, when
    the decode replica has computed the prompt's last token once more (vLLM: `_update_waiting_for_remote_kv`, and so
    llm-d and Dynamo with vLLM, whose proxies let the prefill replica answer with one token and drop it).

    In *order* ``prefill_first`` the decode replica is chosen when the prompt is computed, and its blocks reserved then
    (vLLM, TensorRT-LLM, DistServe); ``decode_first``, both come before the prompt is computed (SGLang, Splitwise).
    """

    first_token: FirstToken | None = Field(None, description="When the client gets the first token.")
    order: HandoverOrder | None = Field(None, description="Whose replica is chosen, and whose blocks are taken, first.")
    overlap: bool = Field(
        False, description="Layers are sent while the prompt is computed (Splitwise); needs decode_first."
    )
    link: Literal["network", "interconnect", "pcie"] = Field(
        "network", description="What the KV moves over: of the accelerator's profile its NIC, NVLink or PCIe."
    )
    bytes_per_s: BytesPerSecond | None = Field(
        None, gt=0, description="One direction, of one accelerator, instead of the profile's [B/s]."
    )
    efficiency: float = Field(
        0.87,
        gt=0,
        le=1,
        description="Share of it that a transfer gets; Mooncake's engine: 87 of 100 GB/s on 4 NICs of 200 Gb/s"
        " (190 of 400 on 8 of 400 Gb/s).",
    )
    latency_s: Seconds = Field(
        5e-5, ge=0, description="Of every transfer, beside its bytes; inference-sim takes 0.05 ms [s]."
    )
    local_prefill: LocalPrefill = Field(LocalPrefill(), description="What a decode replica serves alone.")
    encode_s: Seconds = Field(
        0.0, ge=0, description="Of every request before its prompt: an encoder for images, on machines of its own [s]."
    )

    @model_validator(mode="after")
    def _one_link(self) -> Disaggregation:
        if self.bytes_per_s is not None and "link" in self.model_fields_set:
            raise ValueError("bytes_per_s is instead of what the profile says of a link: write one of them")
        return self

    @model_validator(mode="after")
    def _overlaps_in_reserved_blocks(self) -> Disaggregation:
        if self.overlap and self.order == "prefill_first":
            raise ValueError("overlap needs order decode_first: layers can only be sent to blocks that are reserved")
        return self
