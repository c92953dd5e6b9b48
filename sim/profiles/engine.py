"""A serving engine: what each of its versions does when no flag is given, and what its own code costs."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from sim.errors import ProfileError
from sim.profiles.base import Profile
from sim.profiles.engine_graphs import Graphs
from sim.profiles.engine_memory import EngineMemory
from sim.profiles.hardware import Hardware
from sim.profiles.quantization import Dtype, Quantization
from sim.section import Section
from sim.units import Bytes, Seconds

__all__ = [
    "LATEST",
    "BatchLimits",
    "Engine",
    "EngineVersion",
    "FirstToken",
    "Handover",
    "HandoverOrder",
    "HostTime",
    "RequestDelay",
    "Serves",
    "StructuredOutput",
    "split_version",
]

LATEST = "latest"
FirstToken = Literal["prefill", "transfer", "decode"]
HandoverOrder = Literal["prefill_first", "decode_first"]


class HostTime(Section):
    """Time of scheduling, input preparation and output handling around one iteration."""

    per_iteration_s: Seconds = Field(ge=0, description="Of every iteration [s].")
    per_sequence_s: Seconds = Field(ge=0, description="Of each sequence in it [s].")
    per_prefill_s: Seconds = Field(ge=0, description="Of an iteration that prefills [s].")
    overlapped: bool = Field(
        description="The next iteration is prepared while the GPU works: the longer counts, else the sum."
    )


class RequestDelay(Section):
    """What passes before the engine sees a request: HTTP, and tokenisation of the prompt."""

    fixed_s: Seconds = Field(ge=0, description="Of every request [s].")
    per_prompt_token_s: Seconds = Field(ge=0, description="Of each token of its prompt [s].")


class Handover(Section):
    """How a prefill replica hands a request over to a decode replica: see `sim.router.disaggregation`."""

    first_token: FirstToken = Field("prefill", description="When the client gets the first token.")
    order: HandoverOrder = Field("prefill_first", description="Whose replica is chosen, and blocks taken, first.")


class StructuredOutput(Section):
    """How answers are kept to a grammar: a mask of tokens for each that is sampled, made by a library on the host."""

    backend: str = Field(description="Library that is taken where none is asked for.")
    backends: tuple[str, ...] = Field((), description="Others that may be asked for.")
    overlapped: bool = Field(description="Masks are made while the GPU computes what they are for; else it waits.")
    threads: int = Field(1, ge=1, description="Cores that make masks at once, without drafts.")
    serial_up_to: int = Field(0, ge=0, description="So many masks are made by one core alone.")
    masked_share: float = Field(1.0, gt=0, le=1, description="Of the sampled tokens, those for which a mask is made.")


class BatchLimits(Section):
    """Default limits of a batch on some accelerators; the first that applies counts."""

    gpu_memory_at_least_bytes: Bytes = Field(0.0, ge=0, description="Visible memory from which it applies [B].")
    not_on: tuple[str, ...] = Field((), description="Accelerators, by a part of their name, that it leaves out.")
    max_num_seqs: int = Field(gt=0, description="Sequences that run at once.")
    max_num_batched_tokens: int = Field(gt=0, description="Tokens of one iteration, in an HTTP server.")
    offline_max_num_batched_tokens: int | None = Field(
        None, gt=0, description="The same in offline batch inference; missing: as in a server."
    )
    covers_max_model_len: bool = Field(
        False, description="The tokens are raised to `max_model_len`, since prompts are not cut into chunks."
    )

    def applies_to(self, hardware: Hardware) -> bool:
        """Tell whether these are the limits on *hardware*."""
        known_as = " ".join((hardware.name, *hardware.aliases)).casefold()
        left_out = any(part.casefold() in known_as for part in self.not_on)
        return hardware.visible_memory_bytes >= self.gpu_memory_at_least_bytes and not left_out


class EngineVersion(Section):
    """An engine's defaults and constants from one release on, until the next one that is listed."""

    since: str = Field(description="First release for which this holds.")
    sources: dict[str, str] = Field(description="Field name to where its numbers come from.")
    scheduler: str = Field(description="Scheduler by `kind`; one that is not simulated is refused by this name.")
    scheduler_options: dict[str, bool | int | float | str] = Field(
        {}, description="Options of this scheduler in which the engine differs from the scheduler's own defaults."
    )
    batch_limits: tuple[BatchLimits, ...] = Field(min_length=1)
    block_size: int = Field(gt=0, description="Tokens of one KV block.")
    prefix_caching: bool = Field(description="Blocks of a finished prompt are kept and found again.")
    cache_generated: bool = Field(description="With prefix caching, generated tokens are kept as well.")
    partial_reuse: bool = Field(False, description="With prefix caching, partly filled blocks are kept as well.")
    gpu_memory_utilization: float | None = Field(
        gt=0,
        le=1,
        description="Share of memory that the engine takes (its meaning: `memory`); None: it computes it.",
    )
    memory: EngineMemory
    host: HostTime
    request_delay: RequestDelay
    graphs: Graphs | None = Field(None, description="Missing: what the host launches is within `host`.")
    structured_output: StructuredOutput | None = Field(None, description="Missing: it cannot be asked for.")
    stream_lag_iterations: float = Field(
        0.0, ge=0, description="Iterations by which the client sees the first token late."
    )
    decides_ahead: bool = Field(
        False, description="The next iteration is decided when one begins, so that an arrival is seen one later."
    )
    mxfp4_activations: Dtype | None = Field(
        None, description="Inputs of MXFP4 experts on accelerators with 4-bit floats; missing: they stay in 16 bits."
    )
    fp8_inputs_fused: bool = Field(
        False, description="What writes the inputs of an fp8 product writes them in fp8, by scales of the checkpoint."
    )

    def multiplied_on(self, hardware: Hardware, quantization: Quantization) -> Quantization:
        """Return *quantization* with the inputs that the engine gives to its products on *hardware*."""
        if self.mxfp4_activations is None or quantization.activations is not None or "fp4" not in hardware.peak_flops:
            return quantization
        return quantization.model_copy(update={"activations": self.mxfp4_activations})

    batch_expansion: bool = Field(
        False, description="The tokens of a draft are verified as sequences, each of which reads the whole context."
    )
    handover: Handover = Field(Handover(), description="How prefill and decode replicas work together.")

    def limits_on(
        self, hardware: Hardware, *, offline: bool = False, max_model_len: int | None = None
    ) -> tuple[int, int]:
        """Return the default ``(max_num_seqs, max_num_batched_tokens)`` on *hardware*."""
        limits = next(limits for limits in self.batch_limits if limits.applies_to(hardware))
        tokens = (offline and limits.offline_max_num_batched_tokens) or limits.max_num_batched_tokens
        if limits.covers_max_model_len and max_model_len is not None:
            tokens = max(tokens, max_model_len)
        return limits.max_num_seqs, tokens

    @model_validator(mode="after")
    def _has_limits_for_all(self) -> EngineVersion:
        last = self.batch_limits[-1]
        if last.gpu_memory_at_least_bytes or last.not_on:
            raise ValueError("the last of batch_limits must hold on every accelerator")
        return self


class Serves(Section):
    """What an engine runs on, which models and which types of weights; none: no limit that a source states."""

    vendors: tuple[str, ...] = Field(min_length=1, description="Vendors of the accelerators.")
    not_on: tuple[str, ...] = Field((), description="Accelerators of these vendors, by name, on which it does not run.")
    weights: tuple[Dtype, ...] = Field((), description="Types of weights.")
    needs: dict[Dtype, str] = Field(
        {}, description="Weights that it reads only where the accelerator multiplies this type, as in its peak_flops."
    )
    architectures: tuple[str, ...] = Field((), description="Models, by the `model_type` of their config.")
    lacks: tuple[str, ...] = Field((), description="Models that it does not serve, where it serves all others.")
    until: dict[str, str] = Field({}, description="Models that it no longer serves, by the last release that did.")

    def runs_on(self, hardware: Hardware) -> bool:
        """Tell whether the engine runs on *hardware*."""
        return hardware.vendor in self.vendors and hardware.name not in self.not_on

    def reads(self, dtype: Dtype, hardware: Hardware) -> bool:
        """Tell whether it reads weights of that type on *hardware*."""
        needed = self.needs.get(dtype)
        return (not self.weights or dtype in self.weights) and (needed is None or needed in hardware.peak_flops)

    def knows(self, architecture: str, version: str) -> bool:
        """Tell whether that release serves models of the *architecture*."""
        if architecture in self.lacks or (self.architectures and architecture not in self.architectures):
            return False
        last = self.until.get(architecture)
        return last is None or (version != LATEST and _numbers(version)[: len(_numbers(last))] <= _numbers(last))


class Engine(Profile):
    """All versions of one engine; in the YAML each states only what it changes in the one before it."""

    serves: Serves | None = Field(None, description="Missing: whatever it is asked for.")
    behind: str | None = Field(
        None, description="Engine that it puts a server around, whose versions are its own; instead of `versions`."
    )
    newest: str | None = Field(None, description="Newest release that was looked at; missing: no limit.")
    versions: tuple[EngineVersion, ...] = Field((), description="Oldest first.")

    def resolve(self, load: Callable[[str], Engine]) -> Engine:
        """Return this engine with the versions of the one *behind* it, if there is one."""
        if self.behind is None:
            return self
        engine = load(self.behind)
        return self.model_copy(update={"versions": engine.versions, "newest": engine.newest})

    def at(self, version: str) -> EngineVersion:
        """Return what holds for a release such as ``0.19``, ``0.19.1`` or ``latest``.

        Raise a `ProfileError` that names the known range for a release outside of it.
        """
        if version == LATEST:
            return self.versions[-1]
        wanted = _numbers(version)
        known = [candidate for candidate in self.versions if _numbers(candidate.since) <= wanted]
        newest = _numbers(self.newest) if self.newest else wanted
        if not wanted or not known or wanted[: len(newest)] > newest:
            upper = f" to {self.newest}" if self.newest else " on"
            known_range = f"known are {self.versions[0].since}{upper}, and {LATEST!r}"
            raise ProfileError(f"{self.name} has no version {version!r}: {known_range}")
        return known[-1]

    @model_validator(mode="before")
    @classmethod
    def _inherit(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("versions"), list):
            return data | {"versions": list(accumulate(data["versions"], _overlaid))}
        return data

    @model_validator(mode="after")
    def _has_versions(self) -> Self:
        if bool(self.versions) == (self.behind is not None):
            raise ValueError("either versions or behind must be given")
        return self

    @model_validator(mode="after")
    def _ascends(self) -> Engine:
        for older, newer in pairwise(self.versions):
            if _numbers(older.since) >= _numbers(newer.since):
                raise ValueError(f"version {newer.since!r} must come before {older.since!r}: oldest first")
        return self


def split_version(engine: str) -> tuple[str, str]:
    """Split ``vllm@0.19`` into name and version; without a version it is ``latest``."""
    name, _, version = engine.partition("@")
    return name, version or LATEST


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a release starts with: (0, 6, 6) of ``v0.6.6.post1``; () if there are none."""
    match = re.match(r"[vb]?(\d+(?:\.\d+)*)", version)
    return tuple(map(int, match[1].split("."))) if match else ()


def _overlaid(older: Any, newer: Any) -> Any:
    """Return *older* with what *newer* states; lists and other ``kind``s of mapping are replaced."""
    if not isinstance(older, dict) or not isinstance(newer, dict):
        return newer
    if newer.get("kind", older.get("kind")) != older.get("kind"):
        return newer
    return older | {key: _overlaid(older.get(key), value) for key, value in newer.items()}
