"""The deployment behind a step trace as an experiment."""

from __future__ import annotations

from typing import Any

from calibration.cases.names import gpu_of, kv_dtype, model_name, quantization, version_of
from calibration.cases.serving import ServingCase
from calibration.experiment.of_case import Prepared
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
        The row names what there is no profile for.
    """
    assumed: list[str] = []
    kind, version, _ = version_of(case, assumed)
    name = model_name(case)
    model = load_model(name)
    kept = kv_dtype(case, model, assumed)
    types = quantization(case, model) | ({"kv_cache": kept} if kept else {})
    data: dict[str, Any] = {
        "model": name,
        "deployment": {"gpu": gpu_of(case), "parallelism": {"tp": case.whole("tp") or 1}, "quantization": types},
        "engine": {"kind": kind, "version": version, "num_gpu_blocks_override": 1, "calibration": calibration},
        "workload": {"arrivals": {"kind": "offline"}, "lengths": _ANY_LENGTHS},
    }
    return Prepared(experiment_of(Document(data, f"case {case.name}", ConfigError, {})), assumed)
