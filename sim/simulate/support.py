"""Whether an engine runs on the accelerator, and serves the model with the weights that an experiment asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sim.experiment import Experiment
from sim.profiles.engine import LATEST, Engine, Serves
from sim.profiles.folders import names
from sim.profiles.hardware import Hardware
from sim.profiles.library import load_engine
from sim.profiles.model import Model
from sim.profiles.quantization import PARTS, Dtype, Quantization

__all__ = ["require_support"]

Able = Callable[[Serves, str], bool]
"""Whether an engine that serves this can do what is asked for, by its release."""


def require_support(experiment: Experiment, engine: Engine, model: Model, hardware: Hardware) -> None:
    """Raise a `ConfigError` that names engines that do where *engine* does not."""
    for what, able in _asked(experiment, model, hardware):
        if engine.serves is not None and not able(engine.serves, experiment.engine.version):
            raise experiment.error("engine.kind", f"{engine.name} {what}; {_engines(experiment, model, hardware)}")


def _asked(experiment: Experiment, model: Model, hardware: Hardware) -> Iterator[tuple[str, Able]]:
    """Yield what is asked for, as a sentence about an engine that cannot do it."""
    where, architecture = f"{hardware.name} of {hardware.vendor}", model.architecture
    yield f"does not run on {where}", lambda serves, _: serves.runs_on(hardware)
    yield f"does not serve {architecture} models", lambda serves, version: serves.knows(architecture, version)
    for dtype in dict.fromkeys(_types(model, experiment.deployment.quantization)):
        yield f"reads no {dtype} weights on {hardware.name}", _reader(dtype, hardware)


def _types(model: Model, quantization: Quantization) -> Iterator[Dtype]:
    """Yield the types of the parts that *model* has: those asked for, else those of its checkpoint."""
    for part in PARTS:
        if model.params_of(part):
            yield model.dtype_of(part, quantization)


def _reader(dtype: Dtype, hardware: Hardware) -> Able:
    return lambda serves, _: serves.reads(dtype, hardware)


def _engines(experiment: Experiment, model: Model, hardware: Hardware) -> str:
    """Return which engines can do all that is asked for."""
    every = (load_engine(name, experiment.folder) for name in names("engines", experiment.folder))
    asked = [able for _, able in _asked(experiment, model, hardware)]
    found = [each.name for each in every if each.serves is None or all(able(each.serves, LATEST) for able in asked)]
    return f"{', '.join(found)} can" if found else "no engine with a profile can"
