"""Iterations of a step trace as what the cost model is asked: its exact decodes, and the deployment behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from calibration.cases.names import gpu_of, kv_dtype, model_name, quantization, version_of
from calibration.cases.serving import ServingCase
from calibration.runs import Steps
from sim.batch import Batch
from sim.errors import ConfigError
from sim.experiment import Experiment, experiment_of
from sim.profiles.library import load_model
from sim.yamlfile import Document

__all__ = ["METRIC", "Step", "exact_decodes", "experiment_of_steps"]

METRIC = "step_ms"
_ANY_LENGTHS = {"kind": "fixed", "input_tokens": 1, "output_tokens": 1}


class Step(NamedTuple):
    """One iteration: its place in the trace, what it computed, and its time [ms]."""

    place: int
    batch: Batch
    measured_ms: float


def exact_decodes(steps: Steps) -> Iterator[Step]:
    """Yield each exact iteration that decodes and prefills nothing.

    Iterations with prompts are left out: where engines schedule ahead, their times may belong to the one before.
    """
    decoding = (steps.prefill_tokens == 0) & (steps.decode_sequences > 0) & (steps.step_s > 0)
    exact = decoding if steps.exact is None else decoding & (steps.exact == 1)
    for place in np.flatnonzero(exact).tolist():
        decodes, context = round(steps.decode_sequences[place]), round(steps.kv_tokens[place])
        batch = Batch(decodes=decodes, decode_context_tokens=context, sampled=decodes)
        yield Step(place, batch, 1e3 * float(steps.step_s[place]))


def experiment_of_steps(case: ServingCase, calibration: str | None = None) -> Experiment:
    """Return an experiment on the deployment of *case*; its workload plays no part. *calibration*: see `EngineChoice`.

    Raises
    ------
    NotModelledError
        The row names what there is no profile for.
    """
    kind, version, _ = version_of(case, [])
    name = model_name(case)
    model = load_model(name)
    kept = kv_dtype(case, model, [])
    types = quantization(case, model) | ({"kv_cache": kept} if kept else {})
    data: dict[str, Any] = {
        "model": name,
        "deployment": {"gpu": gpu_of(case), "parallelism": {"tp": case.whole("tp") or 1}, "quantization": types},
        "engine": {"kind": kind, "version": version, "num_gpu_blocks_override": 1, "calibration": calibration},
        "workload": {"arrivals": {"kind": "offline"}, "lengths": _ANY_LENGTHS},
    }
    return experiment_of(Document(data, f"case {case.name}", ConfigError, {}))
