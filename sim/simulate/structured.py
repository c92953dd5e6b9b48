"""What structured output costs: the experiment's own numbers, else those of the engine and of its library."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sim.cost.masks import Masks
from sim.experiment import Experiment, StructuredBackend
from sim.profiles.engine import EngineVersion
from sim.profiles.grammar import Grammar
from sim.profiles.library import load_grammar
from sim.simulate.profiles import named

__all__ = ["Structure", "grammar_library", "structure_of"]


@dataclass(frozen=True, slots=True)
class Structure:
    """Time of the masks, and of a grammar that is new to a replica [s]."""

    masks: Masks
    compile_s: float


def structure_of(experiment: Experiment, version: EngineVersion) -> Structure | None:
    """Return what structured output costs on this engine; None where nothing of *experiment* speaks of it.

    A trace may name the schema of each request: those count where the engine's options are there, be they empty.

    Raises
    ------
    ConfigError
        The engine has none, or not with this library.
    """
    if not experiment.workload.structured and experiment.engine.structured_output is None:
        return None
    library, engine = grammar_library(experiment, version), version.structured_output
    assert engine is not None, "an engine with a library has structured output"
    asked = experiment.engine.structured_output or StructuredBackend()
    masks = Masks(
        mask_s=library.mask_s.of(asked.difficulty) * engine.masked_share if asked.mask_s is None else asked.mask_s,
        overlapped=engine.overlapped if asked.overlapped is None else asked.overlapped,
        threads=1 if experiment.engine.speculative is not None else engine.threads,
        serial_up_to=engine.serial_up_to,
    )
    return Structure(masks, library.compile_s.of(asked.difficulty) if asked.compile_s is None else asked.compile_s)


def grammar_library(experiment: Experiment, version: EngineVersion) -> Grammar:
    """Return the library that makes the masks; raise `ConfigError` where the engine has none, or not that one."""
    engine, kind, asked = version.structured_output, experiment.engine.kind, experiment.engine.structured_output
    if engine is None:
        raise experiment.error("engine.kind", f"{kind} from {version.since} on has no structured output")
    if asked is None or asked.backend is None:
        return load_grammar(engine.backend)
    path = "engine.structured_output.backend"
    library = named(experiment, path, partial(load_grammar, asked.backend, experiment.folder))
    known = (engine.backend, *engine.backends)
    if library.name not in known:
        raise experiment.error(path, f"{kind} makes no masks with {library.name}; known are {', '.join(known)}")
    return library
