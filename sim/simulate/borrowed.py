"""Constants of a run that were measured of another engine or library than its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.cost import Roofline
from sim.experiment import Experiment
from sim.profiles.folders import exists
from sim.profiles.hardware import Hardware
from sim.profiles.library import load_all_to_all, load_calibrated_engine, load_engine
from sim.simulate.pools import ReadyPool
from sim.simulate.profiles import constants_name

__all__ = ["borrowed_warnings"]


def borrowed_warnings(pools: Sequence[ReadyPool]) -> Iterator[str]:
    """Name what the cost of an iteration takes from elsewhere, once for all *pools*."""
    found = [line for pool in pools for line in _of(pool.experiment, pool.setup.hardware)]
    yield from dict.fromkeys(found)


def _of(experiment: Experiment, hardware: Hardware) -> Iterator[str]:
    if isinstance(experiment.cost_model, Roofline):
        yield from _constants(experiment)
        yield from _exchange(experiment, hardware)


def _constants(experiment: Experiment) -> Iterator[str]:
    """Say so where engine constants were fitted to runs of another engine; those that do not tell are taken as its own.

    A profile without `engine` that is called as an engine is that engine's.
    """
    beside = experiment.folder
    engine = load_engine(experiment.engine.kind, beside)
    name = constants_name(experiment, engine)
    if name is None:
        return
    fitted = load_calibrated_engine(name, beside)
    of = fitted.engine or (fitted.name if exists("engines", fitted.name, beside) else None)
    if of is not None and of not in (engine.name, engine.behind):
        yield f"engine.calibration: {fitted.name} was fitted to runs of {of}, and engine.kind is {engine.name}"


def _exchange(experiment: Experiment, hardware: Hardware) -> Iterator[str]:
    """Say so where a library was not timed between nodes."""
    chosen, parallelism = experiment.engine.all_to_all, experiment.deployment.parallelism
    if chosen is None or parallelism.dp == 1 or parallelism.tp * parallelism.dp <= hardware.joined:
        return
    library = load_all_to_all(chosen.library, experiment.folder)
    if library.several_nodes_of is not None:
        yield f"engine.all_to_all: over several nodes, {library.name} has the times of {library.several_nodes_of}"
