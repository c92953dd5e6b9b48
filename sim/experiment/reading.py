"""Reads experiments from files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sim.experiment.experiment import Experiment
from sim.profiles.command_line import with_flags
from sim.yamlfile import Document, read_yaml, validate

__all__ = ["experiment_of", "load_experiment"]


def load_experiment(path: str | Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read the experiment at *path*, with ``a.b.c=value`` *overrides* applied.

    Raises
    ------
    ConfigError
        For anything that cannot be used, with file, line and dotted path.
    """
    document = read_yaml(path)
    for assignment in overrides:
        document = document.override(assignment)
    return experiment_of(document)


def experiment_of(document: Document) -> Experiment:
    """Return the experiment that *document* describes; raise `ConfigError` as `load_experiment` does."""
    written, document = document, with_flags(document)
    experiment = validate(Experiment, document)
    if not experiment.name:
        experiment = experiment.model_copy(update={"name": Path(document.file).stem})
    return experiment.read_from(document, written)
