"""The experts of a deployment: the section ``moe`` of an experiment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from pydantic import Field

from sim.errors import ConfigError
from sim.moe.capacity import Capacity
from sim.moe.dispatch import AnyDispatch, RoundRobin
from sim.moe.drift import Drift
from sim.moe.expert_load import ExpertLoad
from sim.moe.expert_map import ExpertMap, Floats, Layout
from sim.moe.placement import AnyPlacement, Contiguous
from sim.moe.popularity import AnyPopularity, Uniform
from sim.moe.routing import Routing
from sim.moe.sampling import Sampler
from sim.paths import located
from sim.profiles.layers import Layers, MoeMlp
from sim.profiles.model import Model
from sim.profiles.params import expert_params
from sim.profiles.quantization import Quantization, bytes_per_element
from sim.section import Section
from sim.units import Seconds

__all__ = ["Mixture", "Rebalance"]

_ITERATIONS_OF_LAYERS = 1024
"""Layers times iterations that a table averages over: its means then have a standard error below 1 %."""
_PLACEMENTS = 6
"""Rebalancings that a table averages over."""


class Rebalance(Section):
    """Placing the experts anew while serving, by the loads of the last iterations."""

    step_interval: int = Field(
        3000, ge=1, description="Iterations between two placements (SGLang `eplb_rebalance_num_iterations`)."
    )
    window_size: int = Field(
        1000, ge=1, description="Iterations whose loads count (SGLang `expert_distribution_recorder_buffer_size`)."
    )
    use_async: bool = Field(False, description="Weights move beside the iterations, which do not wait for them.")
    layer_overhead_s: Seconds = Field(
        0.015,
        ge=0,
        description="What a layer takes besides its bytes; the default is of vLLM with DeepSeek-R1 on 32 GB200: 0.91 s"
        " for 58 layers (pull request 43219) [s].",
    )


class Mixture(Section):
    """How routed experts are chosen and where they live."""

    popularity: AnyPopularity = Field(Uniform(), description="How popular experts are in the long run.")
    drift: Drift = Field(Drift(), description="How that changes from batch to batch and slowly.")
    placement: AnyPlacement = Field(Contiguous(), description="Which expert each slot holds.")
    num_redundant_experts: int = Field(
        0, ge=0, le=2**14, description="Slots of a layer beyond its experts, of all ranks."
    )
    dispatch: AnyDispatch = Field(RoundRobin(), description="Which copy of an expert serves a token.")
    capacity: Capacity | None = Field(None, description="Limit to the tokens of a slot; missing: none.")
    rebalance: Rebalance | None = Field(None, description="Missing: placed once, by the long-run popularity.")
    groups: int = Field(1, ge=1, description="Groups of consecutive experts that the router ranks (DeepSeek-V3: 8).")
    group_limit: int | None = Field(None, ge=1, description="Groups that a token may choose from (DeepSeek-V3: 4).")
    run_tokens: float = Field(1.0, ge=1, description="Tokens in a row that choose the same experts, mean [tokens].")
    seed: int = Field(0, ge=0, description="Seed of popularity and drift.")

    def stored(self, model: Model, quantization: Quantization) -> Model:
        """Return *model* with as many experts in each layer as there are slots: what the ranks have to hold."""
        facts = {name: getattr(model, name) for name in type(model).model_fields}
        facts["layers"] = tuple(self._stored(kind) for kind in model.layers)
        if model.checkpoint_bytes is not None:
            element_bytes = bytes_per_element(model.dtype_of("experts", quantization))
            facts["checkpoint_bytes"] += self.redundant_params(model) * element_bytes
        return type(model)(**facts)  # made anew: a copy would keep sums of its old layers

    def redundant_params(self, model: Model) -> int:
        """Count the weights of all redundant experts."""
        mixtures = [(kind.count, kind.mlp) for kind in model.layers if isinstance(kind.mlp, MoeMlp)]
        one_each = sum(count * expert_params(mlp, model.hidden_size) for count, mlp in mixtures)
        return self.num_redundant_experts * one_each

    def _stored(self, kind: Layers) -> Layers:
        if not isinstance(kind.mlp, MoeMlp):
            return kind
        experts = kind.mlp.experts + self.num_redundant_experts
        return kind.model_copy(update={"mlp": kind.mlp.model_copy(update={"experts": experts})})

    def files(self) -> list[Path]:
        """Return the files that it reads."""
        return [part.path for part in (self.popularity, self.placement) if "path" in type(part).model_fields]

    def beside(self, folder: Path) -> Mixture:
        """Return this mixture with its files found from *folder*."""
        parts = {"popularity": self.popularity, "placement": self.placement}
        found = {
            name: part.model_copy(update={"path": located(part.path, folder)})
            for name, part in parts.items()
            if "path" in type(part).model_fields
        }
        return self.model_copy(update=found)

    def placed(self, layers: int, experts: int, top_k: int, ranks: int, nodes: int = 1) -> tuple[Floats, ExpertMap]:
        """Return the long-run share of every expert in all choices, shape (layers, experts), and where it lives.

        Raise a `UserError` as `load` does.
        """
        routing = self._routing(experts, top_k)
        shares = routing.shares(self.popularity.draw(layers, experts, self._random()))
        return shares, self.placement.place(shares, self._layout(experts, ranks, nodes))

    def load(self, layers: int, experts: int, top_k: int, ranks: int, nodes: int = 1) -> ExpertLoad:
        """Return what iterations load on the ranks, on average over `loads`."""
        return ExpertLoad.average(self.loads(layers, experts, top_k, ranks, nodes))

    def loads(self, layers: int, experts: int, top_k: int, ranks: int, nodes: int = 1) -> list[ExpertLoad]:
        """Return what iterations load on the ranks under each placement that follows another; one without rebalancing.

        Raises
        ------
        UserError
            The numbers do not go together, or a file of loads or slots cannot be used.
        """
        layout, routing, random = self._layout(experts, ranks, nodes), self._routing(experts, top_k), self._random()
        weights = self.popularity.draw(layers, experts, random)
        if self.rebalance is None:
            slow = self.drift.fresh((_iterations(layers), layers, experts), random)
            placed = self.placement.place(routing.shares(weights), layout)
            return [self._table(placed, routing, weights, slow, random)]
        periods = list(self._periods(self.rebalance, weights, routing, layout, random))
        tables = [self._table(placed, routing, weights, slow, random) for placed, slow in periods[1:]]
        moved = [float(now.moved(before).mean()) * layout.slots for (before, _), (now, _) in pairwise(periods)]
        return [replace(table, fetched_slots=slots) for table, slots in zip(tables, moved, strict=True)]

    def _random(self) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=tuple(b"experts")))

    def _layout(self, experts: int, ranks: int, nodes: int) -> Layout:
        return Layout(experts, ranks, experts + self.num_redundant_experts, self.groups, nodes)

    def _routing(self, experts: int, top_k: int) -> Routing:
        if experts % self.groups:
            raise ConfigError(f"{experts} experts do not divide by {self.groups} groups", path="moe.groups")
        if self.group_limit is not None and self.group_limit * (experts // self.groups) < top_k:
            reach = f"{self.group_limit} of {self.groups} groups hold fewer than the {top_k} experts of a token"
            raise ConfigError(reach, path="moe.group_limit")
        return Routing(top_k, self.groups, self.group_limit, self.run_tokens)

    def _table(
        self, placed: ExpertMap, routing: Routing, weights: Floats, slow: Floats, random: np.random.Generator
    ) -> ExpertLoad:
        shares = routing.shares(weights * self.drift.batch(slow, random))
        return Sampler(placed, routing, self.dispatch, self.capacity).table(shares, random)

    def _periods(
        self, rebalance: Rebalance, weights: Floats, routing: Routing, layout: Layout, random: np.random.Generator
    ) -> Iterator[tuple[ExpertMap, Floats]]:
        """Yield placements that follow each other, and the slow drift at moments while each of them holds.

        A placement is decided by the middle of its window and holds from the window's end for `step_interval`.
        """
        seen, moments = self.drift.fresh(weights.shape, random), _iterations(len(weights) * _PLACEMENTS)
        for _ in range(_PLACEMENTS + 1):
            placed = self.placement.place(routing.shares(weights * np.exp(seen)), layout)
            ages = rebalance.window_size / 2 + rebalance.step_interval * (np.arange(moments) + 0.5) / moments
            yield placed, np.array([self.drift.later(seen, age, random) for age in ages])
            seen = self.drift.later(seen, rebalance.step_interval, random)


def _iterations(layers: int) -> int:
    return -(-_ITERATIONS_OF_LAYERS // layers)
