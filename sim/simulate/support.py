"""Whether an engine runs on the accelerator and reads the weights that an experiment asks for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sim.experiment import Experiment
from sim.profiles.engine import Engine
from sim.profiles.hardware import Hardware
from sim.profiles.library import load_engine, names
from sim.profiles.quantization import PARTS, Dtype

__all__ = ["require_support"]


def require_support(experiment: Experiment, engine: Engine, hardware: Hardware) -> None:
    """Raise a `ConfigError` that names engines that do where *engine* does not."""
    if not _runs_on(engine, hardware):
        others = _engines(experiment, lambda other: _runs_on(other, hardware))
        where = f"{hardware.name} of {hardware.vendor}"
        raise experiment.error("engine.kind", f"{engine.name} does not run on {where}; {others}")
    quantization = experiment.deployment.quantization
    for dtype in dict.fromkeys(quantization.of(part) for part in PARTS):
        if not _reads(engine, dtype):
            others = _engines(experiment, partial(_reads, dtype=dtype))
            raise experiment.error("engine.kind", f"{engine.name} reads no {dtype} weights; {others}")


def _runs_on(engine: Engine, hardware: Hardware) -> bool:
    return engine.serves is None or hardware.vendor in engine.serves.vendors


def _reads(engine: Engine, dtype: Dtype | None) -> bool:
    return engine.serves is None or not engine.serves.weights or dtype is None or dtype in engine.serves.weights


def _engines(experiment: Experiment, able: Callable[[Engine], bool]) -> str:
    every = (load_engine(name, experiment.folder) for name in names("engines", experiment.folder))
    found = [engine.name for engine in every if able(engine)]
    return f"{', '.join(found)} can" if found else "no engine with a profile can"
