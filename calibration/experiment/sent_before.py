"""Runs of one server that send the same prompts one after another: where its cache holds a run, the next finds them."""

from __future__ import annotations

from typing import Any

from calibration.cases.serving import ServingCase
from calibration.experiment.draft import Draft
from calibration.experiment.lengths import bounds
from sim.errors import InfeasibleError
from sim.experiment import Experiment
from sim.simulate import prepare

__all__ = ["found_again", "sent_before"]

_SERIES = "IOG-Foundation/llm-inference-benchmarks"
_FIRST_RATE = 32.0


def sent_before(case: ServingCase) -> bool:
    """Tell whether a run before this one sent its prompts to the same server.

    One series sends the same 200 ShareGPT prompts at five rates, the fastest first, and its rows do not say so. Where
    84 thousand tokens fit the cache, first tokens at 16 requests/s and less are all within 1.5 times their median,
    though prompts differ a hundredfold; at 32, and at every rate where they do not fit, one in a hundred needs 2 to 3
    times that.
    """
    return _SERIES in case.text("source") and (case.number("load_value") or _FIRST_RATE) < _FIRST_RATE


def found_again(draft: Draft, experiment: Experiment) -> dict[str, Any] | None:
    """Return what of the workload changes where its cache holds all prompts and answers of such a run; None: nothing.

    The least recently used go first, so that of prompts that come in the same order either all are kept or none.
    """
    case = draft.case
    requests, lengths = case.number("num_requests") or 0.0, (case.number("input_len"), case.number("output_len"))
    try:
        engine = prepare(experiment).engine
    except InfeasibleError:
        return None
    if requests * sum(length or 0.0 for length in lengths) > engine.num_blocks * engine.block_size:
        return None
    draft.assumed.append("prompts are those of the run before, and found again")
    return {"shared_prefix": {"tokens": bounds(draft)[0]}}
