"""An experiment of a text with fields overridden, as ``--set`` does."""

from sim.experiment import experiment_of
from sim.yamlfile import parse_yaml


def overridden(text, *overrides):
    """Return the experiment that *text* is with each of *overrides*, such as ``seed=2``."""
    document = parse_yaml(text, "experiment.yaml")
    for override in overrides:
        document = document.override(override)
    return experiment_of(document)
