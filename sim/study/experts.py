"""What the placement of a mixture's experts is worth: loads of experts and ranks, and the time of an iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sim.batch import Batch
from sim.errors import ConfigError
from sim.experiment import Experiment, experiment_of
from sim.moe.expert_map import ExpertMap, Floats
from sim.moe.mixture import Mixture
from sim.profiles.layers import MoeMlp
from sim.profiles.model import Model
from sim.simulate import Setup, prepare

__all__ = ["EVEN", "IN_ORDER", "PLACED", "ExpertStudy", "has_experts", "study_experts"]

PLACED, IN_ORDER, EVEN = "as placed", "in order, no copies", "perfectly even"
DECODES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Decoding requests of one attention rank, for which times are given."""


@dataclass(frozen=True, slots=True, eq=False)
class ExpertStudy:
    """The mixture of one experiment.

    Attributes
    ----------
    shares
        Long-run share of each expert in all choices, shape (layers, experts).
    placed
        Where the experts live.
    rank_load
        Load of each rank over the mean of its layer, shape (layers, ranks), by placement.
    decodes
        Batch sizes of one attention rank, all decoding.
    iteration_s
        Time of an iteration by placement, shape of *decodes* [s].
    """

    shares: Floats
    placed: ExpertMap
    rank_load: Mapping[str, Floats]
    decodes: tuple[int, ...]
    iteration_s: Mapping[str, Floats]

    @property
    def gain(self) -> Floats:
        """How much more an iteration does than with experts in order and no copies, shape of `decodes`."""
        gain: Floats = self.iteration_s[IN_ORDER] / self.iteration_s[PLACED] - 1
        return gain

    @property
    def left(self) -> Floats:
        """How much more it would do if every rank were loaded alike, shape of `decodes`."""
        left: Floats = self.iteration_s[PLACED] / self.iteration_s[EVEN] - 1
        return left


def has_experts(model: Model) -> bool:
    """Tell whether *model* has routed experts."""
    return any(isinstance(kind.mlp, MoeMlp) for kind in model.layers)


def study_experts(experiment: Experiment, context_tokens: int = 2048) -> ExpertStudy:
    """Place the experts of *experiment*, and compare with what they would do in order, and evenly loaded.

    Parameters
    ----------
    context_tokens
        Context of every decoding request [tokens].

    Raises
    ------
    UserError
        The model has no experts, or the experiment cannot be run as written.
    InfeasibleError
        It does not fit.
    """
    setup = prepare(experiment)
    if not has_experts(setup.model):
        raise experiment.error("model", f"{setup.model.name} has no routed experts")
    mixture = experiment.moe.beside(experiment.folder) if experiment.moe is not None else Mixture()
    in_order = mixture.model_copy(update={"placement": Mixture().placement, "num_redundant_experts": 0})
    shares, placed = _placed(mixture, experiment, setup)
    _, before = _placed(in_order, experiment, setup)
    others = {IN_ORDER: _in_order(experiment), EVEN: _changed(experiment, "moe", None)}
    setups = {PLACED: setup} | {name: prepare(other) for name, other in others.items()}
    return ExpertStudy(
        shares,
        placed,
        {PLACED: _over_mean(placed.rank_load(shares)), IN_ORDER: _over_mean(before.rank_load(shares))},
        DECODES,
        {name: _times_s(each, context_tokens) for name, each in setups.items()},
    )


def _in_order(experiment: Experiment) -> Experiment:
    if experiment.moe is None:
        return experiment
    without_copies = _changed(experiment, "moe.num_redundant_experts", 0)
    return _changed(without_copies, "moe.placement", {"kind": "contiguous"})


def _changed(experiment: Experiment, path: str, value: object) -> Experiment:
    document = experiment.document
    return experiment_of(document.replace(path, value, document.file))


def _placed(mixture: Mixture, experiment: Experiment, setup: Setup) -> tuple[Floats, ExpertMap]:
    """Place the experts of the commonest kind of layer."""
    layers: Counter[tuple[int, int]] = Counter()
    for kind in setup.model.layers:
        if isinstance(kind.mlp, MoeMlp):
            layers[kind.mlp.experts, kind.mlp.top_k] += kind.count
    (experts, top_k), count = layers.most_common(1)[0]
    parallelism = experiment.deployment.parallelism
    nodes = -(-parallelism.tp * parallelism.dp // setup.hardware.gpus_per_node)
    try:
        return mixture.placed(count, experts, top_k, parallelism.ep, nodes)
    except ConfigError as problem:
        raise problem if problem.file else experiment.error(problem.path or "moe", problem.message) from None


def _over_mean(load: Floats) -> Floats:
    over: Floats = load / load.mean(axis=1, keepdims=True)
    return over


def _times_s(setup: Setup, context_tokens: int) -> Floats:
    """Return the time of an iteration in which every attention rank decodes `DECODES` requests [s]."""
    engine = setup.engine
    times = []
    for decodes in DECODES:
        context = decodes * context_tokens
        windows = tuple(min(context, decodes * window) for window in engine.cost.windows)
        batch = Batch(
            decodes=decodes,
            decode_context_tokens=context,
            decode_window_tokens=windows,
            sampled=decodes,
            group_tokens=decodes * engine.attention_ranks,
        )
        times.append(engine.cost.pace(batch).first_s)
    return np.array(times)
