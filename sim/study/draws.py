"""A run with intervals from draws: its constants as their errors allow, and its requests anew."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from sim.experiment import Experiment
from sim.metrics.model_error import Spread
from sim.metrics.summary import summarise
from sim.simulate import Result, ready_pools, simulate
from sim.simulate.draws import Draw, drawn_pools
from sim.workload.streams import stream

__all__ = ["with_draws"]

Figures = dict[str, float]


class _Task(NamedTuple):
    experiment: Experiment
    number: int
    of: int


class _Pair(NamedTuple):
    """Two runs on the same requests: with the constants as they are, and as drawn."""

    plain: Figures
    drawn: Figures


def with_draws(
    result: Result, count: int, processes: int | None = None, on_draw: Callable[[int, int], None] | None = None
) -> Result:
    """Return *result* with intervals from *count* draws, each of which is two simulations.

    Draw *i* serves requests of a seed of its own, once with the constants as they are and once with drawn ones: the
    common requests tell what of a difference is the constants'. Nothing depends on the number of *processes*.

    Parameters
    ----------
    processes
        At most so many; missing: one a core.
    on_draw
        Called with the draws done and their number.

    Raises
    ------
    ConfigError
        No constant has a standard error, so that there is nothing to draw.
    """
    from joblib import Parallel, delayed

    experiment = result.experiment
    constants = _constants(result)
    tasks = [_Task(experiment, number, count) for number in range(count)]
    calls = (delayed(_pair)(task) for task in tasks)
    pairs = []
    for pair in Parallel(n_jobs=processes or -1, batch_size=1, return_as="generator")(calls):
        pairs.append(pair)
        if on_draw is not None:
            on_draw(len(pairs), count)
    context = replace(result.context, spread=_spread(constants, result.summary.uncertain, pairs))
    summary = summarise(result.requests, result.strides, context, result.transfers)
    return replace(result, context=context, summary=summary)


def _constants(result: Result) -> int:
    """Return how many constants there are to draw; raise `ConfigError` if none."""
    draw = Draw(result.experiment.seed, 0, 1)
    drawn_pools(result.pools, draw)
    if draw.names:
        return len(draw.names)
    kinds = {pool.experiment.cost_model.kind for pool in result.pools}
    why = "its constants are the user's own" if kinds == {"affine"} else "no constant of its profiles has one"
    raise result.experiment.error("cost_model", f"nothing to draw without standard errors: {why}")


def _pair(task: _Task) -> _Pair:
    """Simulate one draw and its twin."""
    seed = int(stream(task.experiment.seed, f"replication {task.number}").integers(2**32))
    experiment = task.experiment.model_copy(update={"seed": seed})
    pools = ready_pools(experiment)
    drawn = drawn_pools(pools, Draw(task.experiment.seed, task.number, task.of))
    return _Pair(*(simulate(experiment, pools=each, brief=True).summary.uncertain for each in (pools, drawn)))


def _spread(constants: int, base: Figures, pairs: Sequence[_Pair]) -> Spread:
    keys = [key for key in base if not key.startswith("std") and _all_positive(key, base, pairs)]
    return Spread(
        constants,
        {key: tuple(math.log(pair.drawn[key] / base[key]) for pair in pairs) for key in keys},
        {key: tuple(math.log(pair.drawn[key] / pair.plain[key]) for pair in pairs) for key in keys},
    )


def _all_positive(key: str, base: Figures, pairs: Sequence[_Pair]) -> bool:
    values = [base[key], *(figures.get(key, math.nan) for pair in pairs for figures in pair)]
    return all(math.isfinite(value) and value > 0 for value in values)
