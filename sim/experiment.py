"""An experiment: the whole YAML as frozen models; every policy brings its own fields."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, PrivateAttr, field_validator, model_validator

from sim.admission import AnyAdmission
from sim.autoscaler import AnyAutoscaler
from sim.cluster.lifecycle import Lifecycle
from sim.cost import AnyCostModel, Roofline
from sim.failures import Failures
from sim.kv import Eviction
from sim.kv.tiers import Write
from sim.moe.mixture import Mixture
from sim.policy import Policy
from sim.profiles.command_line import with_flags
from sim.profiles.grammar import Difficulty
from sim.profiles.parallelism import Parallelism
from sim.profiles.prices import PriceKind
from sim.profiles.quantization import Quantization
from sim.router import AnyRouter
from sim.router.disaggregation import Disaggregation
from sim.router.least_loaded import LeastLoaded
from sim.scheduler import AnyScheduler
from sim.search import AnySearch
from sim.section import Section
from sim.slo import SLO
from sim.speculation import AnySpeculation
from sim.sweep import AnySweep
from sim.tco.costs import Costs
from sim.units import Bytes, BytesPerSecond, Seconds
from sim.workload import Workload
from sim.yamlfile import Document, read_yaml, validate

__all__ = [
    "MOST_GPUS",
    "Deployment",
    "EngineOptions",
    "Experiment",
    "Pool",
    "Prices",
    "StructuredOutput",
    "defaults_used",
    "experiment_of",
    "load_experiment",
]

MOST_GPUS = 2**15
"""Most accelerators that are simulated: each replica is an object."""


class Deployment(Section):
    """The accelerators and how replicas spread over them."""

    gpu: str = Field(description="Hardware profile.")
    replicas: int = Field(1, ge=1, description="Equal copies of the model behind the router.")
    parallelism: Parallelism = Field(Parallelism(), description="How one replica spreads over accelerators.")
    interconnect: Literal["auto", "pcie"] = Field(
        "auto",
        description="Between the accelerators of a node. auto: the fastest way that they can have, such as an NVLink"
        " bridge; pcie: no bridge, and no access to each other's memory.",
    )
    quantization: Quantization = Field(Quantization(), description="Data types; missing: the checkpoint's own.")

    @model_validator(mode="after")
    def _of_this_world(self) -> Self:
        if (gpus := self.replicas * self.parallelism.gpus) > MOST_GPUS:
            raise ValueError(f"{gpus:,} accelerators: at most {MOST_GPUS:,} are simulated")
        return self


class AllToAll(Section):
    """A library that carries tokens to the ranks of their experts and back."""

    library: str = Field("deepep", description="Its calibrated profile.")
    mode: Literal["low_latency", "high_throughput", "auto"] = Field(
        "auto", description="auto: low latency up to 256 tokens of a rank, and high throughput beyond."
    )


class OffloadTier(Section):
    """Memory beside the KV cache, of one replica."""

    capacity: Bytes = Field(gt=0, description="Room for KV blocks of a replica, over all its accelerators [B].")
    bandwidth: BytesPerSecond | None = Field(
        None, gt=0, description="To each accelerator; of the first tier, if missing, that of PCIe [B/s]."
    )


class KvOffload(Section):
    """Where KV blocks go beside the accelerators, the fastest place first: host memory, disk."""

    tiers: tuple[OffloadTier, ...] = Field(min_length=1, description="Each takes what the one before has no room for.")
    write: Write = Field("write_through", description="Copy blocks as soon as they are full, or when they are evicted.")


class StructuredOutput(Section):
    """The library that keeps answers to a grammar; `workload.structured_output` says which answers."""

    backend: str | None = Field(None, description="xgrammar, llguidance, outlines or gbnf; missing: the engine's own.")
    difficulty: Difficulty = Field(
        "mixed", description="Of the schemas: mixed, with the few very hard ones of a large collection; or typical."
    )
    mask_s: Seconds | None = Field(None, ge=0, description="A mask, for a sampled token; missing: measured [s].")
    compile_s: Seconds | None = Field(
        None, ge=0, description="A schema that is new to a replica; missing: measured [s]."
    )
    overlapped: bool | None = Field(None, description="Masks are made beside the GPU; missing: as the engine does.")


class EngineOptions(Section):
    """The serving engine and its flags, under vLLM's own names; a missing one is the engine version's default."""

    kind: str = Field("vllm", description="Engine profile.")
    version: str = Field("latest", description="Version of the engine; picks its defaults and constants.")
    calibration: str | None = Field(
        None,
        description="Constants fitted to serving runs, by name or path; none: those of the engine profile; missing:"
        " those of the engine's name, if there are any.",
    )
    flags: str | tuple[str, ...] | None = Field(
        None, description="Command line of the server, as text or word by word, for the fields that it stands for."
    )
    scheduler: AnyScheduler | None = Field(None, description="Missing: the engine version's own.")
    all_to_all: AllToAll | None = Field(
        None, description="How attention data parallel ranks reach routed experts; missing: gathered by collectives."
    )
    enable_dbo: bool = Field(
        False,
        description="vLLM's dual batch overlap: halves of a batch compute while the other's tokens are with the"
        " `all_to_all` library.",
    )
    dbo_decode_token_threshold: int | None = Field(
        None, ge=2, description="With enable_dbo: least tokens of a rank that only decodes; missing: 32 [tokens]."
    )
    dbo_prefill_token_threshold: int | None = Field(
        None, ge=2, description="With enable_dbo: least tokens of a rank with prompts; missing: 512 [tokens]."
    )
    enable_two_batch_overlap: bool = Field(False, description="The same of SGLang, which splits whatever it can.")
    speculative: AnySpeculation | None = Field(
        None, description="Drafts that are verified several tokens at a time; missing: none."
    )
    structured_output: StructuredOutput | None = Field(
        None, description="How answers are kept to a grammar; missing: by the engine's own library."
    )
    gpu_memory_utilization: float | None = Field(None, gt=0, le=1, description="Share of the memory to use.")
    max_captured_batch: int | None = Field(
        None,
        ge=0,
        description="Largest batch whose kernels are replayed as a CUDA graph; of larger ones the host launches each;"
        " 0: it always does; missing: the engine version's own.",
    )
    captured_batches: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(
        None,
        min_length=1,
        description="All batches that are captured, instead of the engine version's up to `max_captured_batch`.",
    )
    graph_padding: bool | None = Field(
        None,
        description="Smaller batches run as the next captured one, with rows for nobody; missing: as the engine version"
        " does.",
    )
    prefix_caching: bool | None = Field(None, description="Reuse the KV of equal prompt prefixes.")
    cache_generated: bool | None = Field(None, description="Key the blocks of answers, too.")
    swap_space: Bytes | None = Field(
        None, ge=0, description="Host memory for each accelerator that preempted requests may use; missing: 4 GiB [B]."
    )
    eviction: Eviction = Field(
        "lru",
        description="Which unused blocks of the prefix cache go first: lru, the least recently used; lfu, the least"
        " often used; slru, those used once; priority, those of the least urgent requests.",
    )
    kv_offload: KvOffload | None = Field(None, description="Tiers of the prefix cache; missing: none.")
    kv_layout: Literal["paged", "contiguous"] = Field(
        "paged", description="contiguous: every request gets room for max_model_len at once, as before paged attention."
    )
    partial_reuse: bool | None = Field(None, description="Keep the partly filled last blocks of prompts, too.")
    block_size: int | None = Field(None, ge=1, le=4096, description="Tokens of a KV block [tokens].")
    max_model_len: int | None = Field(
        None, ge=1, description="Longest sequence accepted, answer included; missing: the model's own [tokens]."
    )
    request_timeout_s: Seconds | None = Field(
        None, gt=0, description="The server gives up what it has not answered by then [s]."
    )
    queue_timeout_s: Seconds | None = Field(
        None, gt=0, description="The server gives up what it has not admitted by then [s]."
    )
    num_gpu_blocks_override: int | None = Field(
        None, ge=1, le=2**40, description="KV blocks of a replica, instead of the memory plan's [blocks]."
    )


class Pool(Section):
    """Equal replicas beside other pools; what it leaves out is as `deployment`, `model` and `engine` have it."""

    name: str | None = Field(None, min_length=1, description="Missing: pool and its number, from 0.")
    role: Literal["prefill", "decode"] | None = Field(
        None, description="Only compute prompts, or only write answers to them; missing: both."
    )
    model: str | None = Field(None, description="What it serves, where pools serve several models.")
    share: float | None = Field(
        None, ge=0, le=1, description="Of the requests, those for its model; pools of one model share it."
    )
    gpu: str | None = Field(None, description="Hardware profile.")
    replicas: int | None = Field(None, ge=1, description="Equal copies of the model.")
    parallelism: Parallelism | None = Field(None, description="How one replica spreads over accelerators.")
    quantization: Quantization | None = Field(None, description="Data types.")
    engine: EngineOptions | None = Field(None, description="Flags that differ from the experiment's `engine`.")
    autoscaler: AnyAutoscaler | None = Field(None, description="How many replicas it has, from `replicas` on.")


_Usd = Annotated[float, Field(ge=0)]
_Price = _Usd | dict[str, _Usd]


class Prices(Section):
    """What an hour costs."""

    gpu_hour_usd: _Price | None = Field(
        None, description="One accelerator, or each by its name; missing: published for it, of this kind [$/h]."
    )
    reserved_gpu_hour_usd: _Price | None = Field(
        None, description="The same with a commitment of a year or more; missing: published, if it is [$/h]."
    )
    purchase_usd: _Price | None = Field(
        None, description="One accelerator, bought, without its server; missing: published, if it is [$]."
    )
    kind: PriceKind | None = Field(
        None, description="Which published price where none is given; missing: on demand, else reserved, else tco."
    )
    electricity_usd_per_kwh: _Usd = Field(
        0.13,
        description="Electricity of what is bought; default: commercial customers in the United States, 2025 (EIA,"
        " Electric Power Monthly, table 5.6.A) [$/kWh].",
    )


class Experiment(Section):
    """One question to the simulator."""

    name: str = Field("", description="Name of the experiment; missing: the file's.")
    model: str = Field(description="Model profile, or path to a Hugging Face config.json or its folder.")
    deployment: Deployment
    pools: tuple[Pool, ...] = Field(
        (), description="Pools of unlike replicas behind the router; missing: one, the deployment."
    )
    moe: Mixture | None = Field(None, description="Load and placement of routed experts; missing: evenly loaded.")
    engine: EngineOptions = Field(EngineOptions(), description="Serving engine and flags.")
    cost_model: AnyCostModel = Field(Roofline(), description="What an iteration costs.")
    stride: Literal["on", "off"] = Field("on", description="off: step every iteration by itself; same answers.")
    router: AnyRouter = Field(LeastLoaded(), description="Which replica serves a request.")
    admission: AnyAdmission | None = Field(
        None, description="Whom the gateway turns away before a replica is chosen; missing: nobody."
    )
    lifecycle: Lifecycle = Field(Lifecycle(), description="How replicas start and stop, where they do.")
    autoscaler: AnyAutoscaler | None = Field(
        None, description="How many replicas each pool has, from `replicas` on; missing: it keeps them."
    )
    failures: Failures | None = Field(None, description="What breaks; missing: nothing ever does.")
    disaggregation: Disaggregation | None = Field(
        None, description="How pools that prefill and pools that decode work together."
    )
    workload: Workload
    slo: SLO | None = Field(None, description="Objectives, such as ttft_p95: 2 s.")
    prices: Prices = Field(Prices(), description="Prices for the cost figures.")
    costs: Costs = Field(Costs(), description="What is paid beside the accelerators.")
    sweep: AnySweep | None = Field(None, description="Points of `sim sweep`; of no kind, a grid: path to values.")
    search: AnySearch | None = Field(None, description="Question of `sim search`; missing: the highest load.")
    seed: int = Field(1, ge=0, description="Seed of every random draw.")

    _document: Document = PrivateAttr()
    _written: Document = PrivateAttr()

    @field_validator("sweep", mode="before")
    @classmethod
    def _grid_unless_named(cls, sweep: Any) -> Any:
        return {"kind": "grid", **sweep} if isinstance(sweep, dict) else sweep

    @property
    def document(self) -> Document:
        """What it was read from, with the overrides, and with fields for `engine.flags`."""
        return self._document

    def document_for(self, paths: Iterable[str]) -> Document:
        """Return what values at *paths* are to be changed in; flags are read anew where they or their engine change."""
        read_anew = any(path.endswith(("engine", "engine.flags", "engine.kind", "engine.version")) for path in paths)
        return self._written if read_anew else self._document

    @property
    def folder(self) -> Path:
        """Folder of the experiment's file, which its paths are relative to."""
        return _folder_of(self._document.file, os.getcwd())

    def error(self, path: str, message: str) -> Exception:
        """Return the error that points at the dotted *path* of the experiment's file."""
        steps = (int(step) if step.isdecimal() else step for step in path.split("."))
        return self._document.error(tuple(steps), message)


@functools.lru_cache(maxsize=64)
def _folder_of(file: str, current: str) -> Path:
    """Return the folder of *file*, relative to the *current* one."""
    return Path(current, file).resolve().parent


def load_experiment(path: str | Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read the experiment at *path*, with ``a.b.c=value`` *overrides* applied.

    Raises
    ------
    ConfigError
        For anything that cannot be used, with file, line and dotted path.
    """
    document = read_yaml(path)
    for assignment in overrides:
        document = document.override(assignment)
    return experiment_of(document)


def experiment_of(document: Document) -> Experiment:
    """Return the experiment that *document* describes; raise `ConfigError` as `load_experiment` does."""
    written, document = document, with_flags(document)
    experiment = validate(Experiment, document)
    if not experiment.name:
        experiment = experiment.model_copy(update={"name": Path(document.file).stem})
    experiment._document, experiment._written = document, written
    return experiment


def defaults_used(section: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted path and value of every field of *section* that nobody set and that has a value.

    A policy that nobody chose counts as one value, its ``kind``.
    """
    for name in type(section).model_fields:
        value, path, written = getattr(section, name), f"{prefix}{name}", name in section.model_fields_set
        if isinstance(value, Policy) and not written:
            yield path, value.kind
        elif isinstance(value, BaseModel):
            yield from defaults_used(value, f"{path}.")
        elif not written and value not in (None, "", ()):
            yield path, value
