"""An experiment: the whole YAML as frozen models; every policy brings its own fields."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, PrivateAttr, field_validator

from sim.admission import AnyAdmission
from sim.autoscaler import AnyAutoscaler
from sim.cluster.lifecycle import Lifecycle
from sim.cost import AnyCostModel, Roofline
from sim.experiment.deployment import Deployment
from sim.experiment.engine import EngineOptions
from sim.experiment.pool import Pool
from sim.experiment.prices import Prices
from sim.failures import Failures
from sim.moe.mixture import Mixture
from sim.router import AnyRouter
from sim.router.disaggregation import Disaggregation
from sim.router.least_loaded import LeastLoaded
from sim.search import AnySearch
from sim.section import Section
from sim.slo import SLO
from sim.sweep import AnySweep
from sim.tco.costs import Costs
from sim.workload import Workload
from sim.yamlfile import Document

__all__ = ["Experiment"]


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

    def read_from(self, document: Document, written: Document) -> Self:
        """Return the same, read from *document*, in which flags are fields, and *written* so."""
        experiment = self.model_copy()
        experiment._document, experiment._written = document, written
        return experiment

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
