"""The files that an experiment's answer depends on, beside the experiment itself."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from sim.errors import UserError
from sim.experiment import Experiment
from sim.paths import is_file, is_folder, located
from sim.profiles.calibrated import HardwareCalibration
from sim.profiles.folders import Kind, exists
from sim.profiles.library import find, load, load_engine, load_hardware
from sim.profiles.safetensors import read_header
from sim.simulate.pools import experiments_of
from sim.simulate.power import BOARDS
from sim.simulate.prices import price_list
from sim.simulate.profiles import constants_name
from sim.simulate.structured import grammar_library
from sim.simulate.uncertainty import TABLE
from sim.workload.arrivals.clients import ClientArrivals
from sim.workload.arrivals.sessions import SessionArrivals
from sim.workload.arrivals.shape import RateShape
from sim.workload.arrivals.trace import TraceArrivals
from sim.workload.lengths.preset import PresetLengths
from sim.workload.traces import companions

__all__ = ["Finder", "file_hash", "input_files"]

Finder = Callable[[Kind, str, Path], Path]
"""Finds a profile as `sim.profiles.library.find` does."""


def input_files(experiment: Experiment, find_profile: Finder = find) -> dict[str, Path]:
    """Return every profile and trace file that a run of *experiment* reads, by what it is for.

    Raises
    ------
    ProfileError
        There is no such profile.
    """
    return {role: path for role, path in _files(experiment, find_profile) if is_file(path)}


def _files(experiment: Experiment, find_profile: Finder) -> Iterator[tuple[str, Path]]:
    for name, alone in experiments_of(experiment):
        yield from ((f"{name}: {role}" if name else role, path) for role, path in _pool_files(alone, find_profile))
    yield from _workload_files(experiment, find_profile)


def _pool_files(experiment: Experiment, find_profile: Finder) -> Iterator[tuple[str, Path]]:
    beside, gpu = experiment.folder, experiment.deployment.gpu
    yield from _model_files(find_profile("models", experiment.model, beside))
    yield "hardware", find_profile("hardware", gpu, beside)
    yield "engine", find_profile("engines", experiment.engine.kind, beside)
    if (prices := price_list(experiment, gpu)) is not None:
        yield "prices", find_profile("prices", prices.name, beside)
    if experiment.cost_model.kind == "roofline":
        yield "power", find_profile("calibrated/power", BOARDS, beside)
        yield from _calibrations(load_hardware(gpu, beside).name, beside, find_profile)
        constants = constants_name(experiment, load_engine(experiment.engine.kind, beside))
        if constants is not None:
            yield "engine constants", find_profile("calibrated/engines", constants, beside)
        if exists("calibrated/errors", TABLE, beside):
            yield "errors", find_profile("calibrated/errors", TABLE, beside)
    if experiment.workload.structured:
        engine = load_engine(experiment.engine.kind, beside)
        grammar = grammar_library(experiment, engine.at(experiment.engine.version))
        yield "grammar", find_profile("grammars", grammar.name, beside)
    if experiment.engine.all_to_all is not None:
        yield "all-to-all", find_profile("calibrated/all_to_all", experiment.engine.all_to_all.library, beside)
    if experiment.moe is not None:
        yield from (("experts", file) for file in experiment.moe.beside(beside).files())


def _workload_files(experiment: Experiment, find_profile: Finder) -> Iterator[tuple[str, Path]]:
    beside, workload = experiment.folder, experiment.workload
    clients = workload.arrivals.clients if isinstance(workload.arrivals, ClientArrivals) else ()
    own = (*(each.lengths for each in workload.classes), *(each.lengths for each in clients))
    for place, lengths in enumerate((workload.lengths, *own)):
        if isinstance(lengths, PresetLengths):
            yield f"lengths {place}" if place else "lengths", find_profile("workloads", lengths.name, beside)
    arrivals = workload.arrivals
    shape = arrivals.shape if isinstance(arrivals, (ClientArrivals, SessionArrivals)) else arrivals
    if isinstance(shape, RateShape) and shape.profile is not None:
        yield "arrivals", find_profile("workloads", shape.profile, beside)
    if isinstance(workload.arrivals, TraceArrivals):
        trace = located(workload.arrivals.path, beside)
        yield "trace", trace
        yield from ((f"trace: {path.name}", path) for path in companions(trace))


def _model_files(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield a model's profile; for a checkpoint its config, and what tells of its tensors."""
    if path.suffix != ".json" and not is_folder(path):
        yield "model", path
        return
    config = path / "config.json" if is_folder(path) else path
    yield "model", config
    beside = [config.parent / "hf_quant_config.json", config.parent / "model.safetensors.index.json"]
    for file in (*beside, *sorted(config.parent.glob("*.safetensors"))):
        yield f"model: {file.name}", file


def _calibrations(gpu: str, beside: Path, find_profile: Finder) -> Iterator[tuple[str, Path]]:
    """Yield the calibration of *gpu* and of the relatives whose constants it takes."""
    name: str | None = gpu
    seen: list[str] = []
    while name is not None and name not in seen:
        path = find_profile("calibrated/hardware", name, beside)
        yield "calibration" + "".join(f" from {name}" for _ in seen[:1]), path
        seen.append(name)
        name = cast("HardwareCalibration", load("calibrated/hardware", str(path))).transferred_from


def file_hash(path: Path) -> str:
    """Return the SHA-256 of an input file; of a safetensors file, which may have many GB, of its header.

    Raise a `UserError` if it cannot be read.
    """
    try:
        status = path.stat()
        return _hash(path, status.st_mtime_ns, status.st_size)
    except OSError as problem:
        raise UserError(f"cannot be read: {problem.strerror}", file=str(path)) from None


@functools.cache
def _hash(path: Path, _modified_ns: int, _size: int) -> str:
    # Time and size are part of the cache's key, so that a changed file is read anew.
    with path.open("rb") as file:
        if path.suffix == ".safetensors":
            length, header = read_header(file)
            return hashlib.sha256(length.to_bytes(8, "little") + header).hexdigest()
        return hashlib.file_digest(file, "sha256").hexdigest()
