"""Questions about a deployment whose replicas are all there, all the time."""

from __future__ import annotations

from sim.experiment import Experiment

__all__ = ["require_standing"]


def require_standing(experiment: Experiment, question: str) -> None:
    """Raise `ConfigError` where *experiment* lets replicas come and go, which *question* does not know of."""
    for section in ("autoscaler", "failures"):
        if getattr(experiment, section) is not None:
            raise experiment.error(section, f"{question} with all replicas ready: leave {section} out")
