"""Runs the sweep of an experiment; what is known already is not run again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

from sim.errors import InfeasibleError, UserError
from sim.experiment import Experiment, experiment_of
from sim.simulate import ready_pools
from sim.study.cache import Cache
from sim.study.folder import SweepFolder
from sim.study.key import Keys
from sim.study.outcome import Outcome, failure, outcome_of
from sim.study.point import Point, points_of
from sim.study.table import Row, squared
from sim.study.workers import Lost, computed

__all__ = ["run_sweep"]


def run_sweep(
    base: Experiment,
    folder: SweepFolder,
    pool: AbstractContextManager[Lost],
    cache: Cache,
    on_progress: Callable[[Row | None, int], None],
) -> list[Row]:
    """Run all points of the sweep of *base* and return their rows, which are then in *folder*, too.

    Parameters
    ----------
    folder
        Keeps every row as it comes; the rows of an earlier sweep that are still true are taken from it.
    pool
        The `workers`, which are not started if there is nothing to do.
    on_progress
        Called with each new row, and at first with none, and the number of points that are left.

    Raises
    ------
    UserError
        There is no sweep, none of its points can be run, or *folder* takes no files.
    """
    points = points_of(base)
    base = experiment_of(base.document_for(["engine"]).replace("sweep", None, base.document.file))  # it can be long
    heads = _heads(base, points)
    rows = _known(heads, folder.rows(), cache)
    left = [point for point in points if point.index not in rows]
    on_progress(None, len(left))
    if left:
        with pool as lost:
            for point, outcome in computed(functools.partial(outcome_of, base), left, lost, _lost):
                row = rows[point.index] = heads[point.index] | outcome
                folder.add(row)
                if row["key"] is not None:
                    cache.put(row["key"], outcome)
                on_progress(row, len(points) - len(rows))
    table = squared([rows[point.index] for point in points])
    folder.finish(table)
    return table


def _heads(base: Experiment, points: list[Point]) -> list[Row]:
    """Return each row up to its outcome; without a key where a point cannot be run as written.

    If none can, the first one's error is raised.
    """
    keys = Keys()
    heads = [_head(base, point, keys) for point in points]
    if all(head["key"] is None for head in heads):
        first = points[0].experiment(base)
        with suppress(InfeasibleError):
            ready_pools(first)
        keys.of(first)
    return heads


def _head(base: Experiment, point: Point, keys: Keys) -> Row:
    columns = point.columns()
    try:
        experiment = point.experiment(base)
        return {**columns, "seed": experiment.seed, "key": keys.of(experiment)}
    except UserError:
        return {**columns, "seed": None, "key": None}


def _known(heads: list[Row], earlier: dict[int, Row], cache: Cache) -> dict[int, Row]:
    """Return the rows whose outcome is known, from *earlier* rows of this sweep or from the *cache*, by number."""
    rows: dict[int, Row] = {}
    for head in heads:
        place, key = head["point"], head["key"]
        row = earlier.get(place)
        if key is None:
            continue
        if row is not None and row["key"] == key and row["status"] != "lost":
            rows[place] = row
        elif outcome := cache.get(key):
            rows[place] = head | outcome
    return rows


def _lost(error: Exception) -> Outcome:
    return failure("lost", f"its worker process died, perhaps for want of memory ({type(error).__name__})")
