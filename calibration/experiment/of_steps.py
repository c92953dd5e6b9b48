"""The deployment behind a step trace as an experiment."""

from __future__ import annotations

from typing import Any

from calibration.cases.names import model_name, version_of
from calibration.cases.serving import ServingCase
from calibration.experiment.deployment import deployment
from calibration.experiment.draft import Draft
from calibration.experiment.of_case import Prepared, refuse_unstated
from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.profiles.library import load_model
from sim.yamlfile import Document

__all__ = ["experiment_of_steps"]

_ANY_LENGTHS = {"kind": "fixed", "input_tokens": 1, "output_tokens": 1}


def experiment_of_steps(case: ServingCase, calibration: str | None = None) -> Prepared:
    """Return an experiment on the deployment of *case*; its workload plays no part. *calibration*: see `EngineChoice`.

    Raises
    ------
    NotModelledError
        The row lacks something, or names what there is no profile for.
    """
    refuse_unstated(case)
    name = model_name(case)
    draft = Draft(case, load_model(name))
    kind, version, _ = version_of(case, draft.assumed)
    data: dict[str, Any] = {
        "model": name,
        **deployment(draft),
        "engine": {"kind": kind, "version": version, "num_gpu_blocks_override": 1, "calibration": calibration},
        "workload": {"arrivals": {"kind": "offline"}, "lengths": _ANY_LENGTHS},
    }
    return Prepared(experiment_of(Document(data, f"case {case.name}", ConfigError, {})), draft.assumed)
