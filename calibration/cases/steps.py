"""Iterations of a step trace as what the cost model is asked: its exact decodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from calibration.runs import Steps
from sim.batch import Batch

__all__ = ["METRIC", "Step", "exact_decodes"]

METRIC = "step_ms"


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
