"""``sim spares EXP.yaml``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sim.commands.experiment import add_experiment, experiment_of
from sim.errors import UserError
from sim.experiment import Experiment
from sim.failures import Failures, enough_ready, spares_for
from sim.report.json import to_json
from sim.simulate import ReadyPool, ready_pools
from sim.units import format_seconds

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    add_experiment(parser, "the experiment, whose replicas are needed and whose `failures` have rates")
    parser.add_argument(
        "--availability", type=float, default=0.999, help="share of the time in which all are to be ready (0.999)"
    )
    parser.add_argument("--crews", type=int, help="repairs that are done at a time (all)")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="how the answer is printed")


def run(options: argparse.Namespace) -> int:
    """Say of each pool how many replicas more than it has keep as many ready."""
    experiment = experiment_of(options)
    if not 0 < options.availability < 1:
        raise UserError(f"--availability {options.availability:g} is not between 0 and 1")
    if options.crews is not None and options.crews < 1:
        raise UserError(f"--crews {options.crews}: at least one")
    pools = ready_pools(experiment)
    answers = [_answer(experiment, pool, options.availability, options.crews) for pool in pools]
    if options.format == "json":
        print(to_json({"pools": [asdict(answer) for answer in answers]}))
    else:
        _show(answers, options.availability)
    return 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What holds of one pool: *ready* is the share of the time in which all needed are, by the number of spares."""

    name: str
    needed: int
    spares: int
    replica_mtbf_s: float
    replica_down_s: float
    ready: list[float]


def _answer(experiment: Experiment, pool: ReadyPool, share: float, crews: int | None) -> Answer:
    """Return the answer for *pool*: a replica is lost when anything breaks that it has a part in."""
    deployment = pool.experiment.deployment
    needed = deployment.replicas
    mtbf_s, repair_s = _of_a_replica(experiment, deployment.parallelism.gpus)
    down_s = repair_s + pool.to_run().cold_start_s
    try:
        spares = spares_for(needed, share, mtbf_s, down_s, crews)
    except ValueError as problem:
        raise UserError(str(problem)) from None
    ready = [enough_ready(needed, needed + more, mtbf_s, down_s, crews) for more in range(spares + 2)]
    return Answer(pool.name, needed, spares, mtbf_s, down_s, ready)


def _of_a_replica(experiment: Experiment, gpus: int) -> tuple[float, float]:
    """Return after which time a replica of so many *gpus* is lost, and how long its repair takes, on average [s]."""
    failures = experiment.failures or Failures()
    counts = {"gpu": gpus, "link": gpus if gpus > 1 else 0, "node": -(-gpus // failures.gpus_per_node)}
    lost = [(counts[what] / rate.mtbf_s, rate.repair_s) for what, rate in failures.rates() if counts[what]]
    if not lost:
        raise experiment.error("failures", "has no rate that a replica could be lost by: write gpu, node or link")
    total = sum(rate for rate, _ in lost)
    return 1 / total, sum(rate * repair_s for rate, repair_s in lost) / total


def _show(answers: Sequence[Answer], share: float) -> None:
    for answer in answers:
        name = f"{answer.name}: " if answer.name else ""
        every, away = format_seconds(answer.replica_mtbf_s), format_seconds(answer.replica_down_s)
        print(f"{name}N = {answer.needed}; a replica is lost every {every}, and away for {away}")
        for more, ready in enumerate(answer.ready):
            enough = f"  <- enough for {share:.4%}" if more == answer.spares else ""
            print(f"  N + {more}: all N ready {ready:.5%} of the time{enough}")
    print("losses are taken to be independent, which those of a shared node are not")
