"""An experiment: one YAML, read and checked."""

from sim.experiment.defaults import defaults_used
from sim.experiment.deployment import MOST_GPUS, Deployment
from sim.experiment.engine import EngineOptions, StructuredBackend
from sim.experiment.experiment import Experiment
from sim.experiment.pool import Pool
from sim.experiment.prices import Prices
from sim.experiment.reading import experiment_of, load_experiment

__all__ = [
    "MOST_GPUS",
    "Deployment",
    "EngineOptions",
    "Experiment",
    "Pool",
    "Prices",
    "StructuredBackend",
    "defaults_used",
    "experiment_of",
    "load_experiment",
]
