"""The `size` command: does a model fit, what fills the card, and how many sequences it then serves at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

from sim.errors import ConfigError, InfeasibleError, did_you_mean
from sim.memory import Deployment, Limits, MemoryPlan, nearest_fits, plan, smallest_tp
from sim.profiles.engine import split_version
from sim.profiles.folders import names
from sim.profiles.hardware import Hardware
from sim.profiles.library import load_engine, load_hardware, load_model
from sim.profiles.parallelism import MOST_RANKS, Parallelism
from sim.profiles.quantization import Dtype, KvDtype, Quantization
from sim.report.json import to_json
from sim.units import LARGEST

if TYPE_CHECKING:
    from sim.experiment import Experiment

__all__ = ["Fit", "add_arguments", "rank_cards", "run_size"]

ALL_CARDS = "all"
_PARALLELISM = ("tp", "pp", "dp", "ep")
_LIMITS = ("max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "block_size")


@dataclass(frozen=True, slots=True)
class Fit:
    """The smallest tensor parallelism of one card that holds a model, or one card's plan that does not."""

    tp: int
    plan: MemoryPlan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `size` to *parser*."""
    parser.add_argument("experiment", nargs="?", metavar="EXP.yaml", help="take what follows from an experiment")
    parser.add_argument("--pool", metavar="NAME", help="which of the experiment's pools (default: the first)")
    parser.add_argument("--model", metavar="M", help="model profile, config.json or model folder")
    parser.add_argument("--gpu", metavar="G", help="hardware profile, or 'all' to rank every card")
    for name in _PARALLELISM:
        parser.add_argument(f"--{name}", type=_ranks, metavar="N", help=_help(Parallelism, name))
    parser.add_argument(
        "--weights", choices=get_args(Dtype), help="data type of the weights (default: the checkpoint's)"
    )
    parser.add_argument(
        "--kv-dtype", choices=get_args(KvDtype), help="data type of keys and values (default: the checkpoint's)"
    )
    parser.add_argument("--engine", metavar="NAME@VERSION", help="such as vllm@0.19 (default: the newest vllm)")
    parser.add_argument("--max-model-len", type=_positive, metavar="N", help="longest sequence (default: the model's)")
    parser.add_argument(
        "--max-num-seqs", type=_positive, metavar="N", help="sequences that must fit at once (default: 1)"
    )
    parser.add_argument(
        "--max-num-batched-tokens", type=_positive, metavar="N", help="tokens of one iteration (default: the engine's)"
    )
    parser.add_argument(
        "--gpu-memory-utilization", type=_share, metavar="X", help="share of the memory to use (default: the engine's)"
    )
    parser.add_argument(
        "--block-size", type=_positive, metavar="N", help="tokens of one KV block (default: the engine's)"
    )
    parser.add_argument("--context", type=_positive, metavar="N", help="length of the sequences to count [tokens]")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="form of the answer")


def _help(section: type[Parallelism], name: str) -> str:
    return str(section.model_fields[name].description)


def _positive(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= LARGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {LARGEST:g}")
    return value


def _ranks(text: str) -> int:
    value = _positive(text)
    if value > MOST_RANKS:
        raise argparse.ArgumentTypeError(f"{text} is not at most {MOST_RANKS}")
    return value


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return value


def run_size(options: argparse.Namespace) -> int:
    """Print what the engine would log, or the ranking of all cards, and return 0.

    Raises
    ------
    InfeasibleError
        After printing: it does not fit, with the nearest changes that do.
    """
    hardware, deployed_on = _described(options)
    return _run_all(deployed_on, options) if hardware is None else _run_one(deployed_on(hardware), options)


def _run_one(deployment: Deployment, options: argparse.Namespace) -> int:
    made = plan(deployment)
    nearest = [] if made.fits else nearest_fits(made, map(load_hardware, names("hardware")))
    if options.format == "json":
        sys.stdout.write(to_json(made.to_json() | ({} if made.fits else {"nearest": nearest})) + "\n")
    elif not made.obstacles:  # there is no card to describe of a model that cannot be cut so
        from sim.report.size_table import print_plan

        print_plan(made, nearest, options.context)
    made.require(nearest)
    return 0


def _run_all(deployed_on: Callable[[Hardware], Deployment], options: argparse.Namespace) -> int:
    if options.tp is not None:
        raise ConfigError("--tp does not go with --gpu all, which finds the smallest tp of every card")
    fits = rank_cards(deployed_on(load_hardware(card)) for card in names("hardware"))
    deployment = fits[0].plan.deployment
    if options.format == "json":
        sys.stdout.write(to_json({"cards": [_row(fit) for fit in fits]}) + "\n")
    else:
        from sim.report.size_table import print_ranking

        print_ranking(deployment.model.name, fits, options.context or deployment.limits.max_model_len)
    if not any(fit.plan.fits for fit in fits):
        raise InfeasibleError(f"{deployment.model.name} needs more", "no card holds it within one node")
    return 0


def _row(fit: Fit) -> dict[str, Any]:
    return {"gpu": fit.plan.deployment.hardware.name, "tp": fit.tp, **fit.plan.to_json()}


def rank_cards(deployments: Iterable[Deployment]) -> list[Fit]:
    """Return every deployment with the smallest tp that fits: fewest cards first, then the least memory in all.

    What does not fit within a node comes last, with its plan at the most ranks that the model can be cut for.
    """
    return sorted(map(_fit, deployments), key=lambda fit: (not fit.plan.fits, fit.tp, fit.plan.ranks[0].visible_bytes))


def _fit(deployment: Deployment) -> Fit:
    tp = smallest_tp(deployment) or deployment.hardware.gpus_per_node
    own = deployment.parallelism.model_copy(update={"tp": tp})
    return Fit(tp, plan(replace(deployment, parallelism=own)))


def _described(options: argparse.Namespace) -> tuple[Hardware | None, Callable[[Hardware], Deployment]]:
    """Return the accelerator, None for all, and what the options describe on one, with its own default limits."""
    hardware, base_on = _from_experiment(options) if options.experiment else _from_names(options)
    return hardware, lambda card: _with_flags(base_on(card), options)


def _with_flags(base: Deployment, options: argparse.Namespace) -> Deployment:
    """Return *base* with what the options say."""
    written = {name: getattr(options, name) for name in _PARALLELISM if getattr(options, name) is not None}
    types = {"weights": options.weights, "kv_cache": options.kv_dtype}
    limits = {name: getattr(options, name) for name in _LIMITS if getattr(options, name) is not None}
    return replace(
        base,
        parallelism=base.parallelism.model_copy(update=written),
        quantization=base.quantization.model_copy(update={key: dtype for key, dtype in types.items() if dtype}),
        limits=replace(base.limits, min_sequences=options.max_num_seqs or 1, **limits),
    )


def _from_names(options: argparse.Namespace) -> tuple[Hardware | None, Callable[[Hardware], Deployment]]:
    if options.model is None or options.gpu is None:
        raise ConfigError("size needs an experiment, or --model and --gpu")
    model = load_model(options.model)
    name, version = split_version(options.engine or "vllm")
    engine = load_engine(name).at(version)
    length = options.max_model_len or model.max_position_embeddings

    def on(hardware: Hardware) -> Deployment:
        seqs, tokens = engine.limits_on(hardware, max_model_len=length)
        memory = engine.gpu_memory_utilization
        limits = Limits(length, seqs, tokens, memory, engine.block_size, graphs=engine.graphs)
        return Deployment(model, hardware, Quantization(), Parallelism(), engine.memory, limits)

    return None if options.gpu == ALL_CARDS else load_hardware(options.gpu), on


def _of_pool(experiment: Experiment, name: str | None) -> Experiment:
    from sim.simulate.pools import experiments_of

    pools = dict(experiments_of(experiment))
    if name is not None and name not in pools:
        raise ConfigError(f"no pool {name!r} in the experiment{did_you_mean(name, pools)}", file="--pool")
    return pools[name] if name is not None else next(iter(pools.values()))


def _from_experiment(options: argparse.Namespace) -> tuple[Hardware | None, Callable[[Hardware], Deployment]]:
    from sim.experiment import load_experiment
    from sim.simulate.flags import decide
    from sim.simulate.memory import memory_plan

    experiment = _of_pool(load_experiment(options.experiment), options.pool)
    beside = experiment.folder
    model = load_model(options.model) if options.model else load_model(experiment.model, beside)
    chosen = experiment.engine
    name, version = split_version(options.engine) if options.engine else (chosen.kind, chosen.version)
    engine = load_engine(name, beside).at(version)

    def on(hardware: Hardware) -> Deployment:
        flags = decide(experiment, model, hardware, engine)
        return memory_plan(experiment, model, hardware, engine, flags).deployment

    if options.gpu == ALL_CARDS:
        return None, on
    return load_hardware(options.gpu) if options.gpu else load_hardware(experiment.deployment.gpu, beside), on
