"""The outcome of one run as a flat row, whether it went well or not."""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from sim.errors import InfeasibleError, UserError
from sim.experiment import Experiment
from sim.simulate import simulate
from sim.study.point import Point

__all__ = ["Outcome", "Status", "failure", "outcome_of"]

Status = Literal["ok", "infeasible", "invalid", "failed", "lost"]
"""Done; does not fit; cannot be run as written; broke on the way; took its worker process with it."""

Outcome = dict[str, Any]
"""``status``, ``error`` and the result's public keys; what is nested there has dotted names here."""


def outcome_of(base: Experiment, point: Point) -> Outcome:
    """Run the *point* of the sweep of *base*; whatever goes wrong is an outcome, too."""
    try:
        result = simulate(point.experiment(base)).summary.as_dict()
    except InfeasibleError as error:
        return failure("infeasible", error)
    except UserError as error:
        return failure("invalid", error)
    except Exception as error:  # a sweep outlives any one of its points
        place = traceback.extract_tb(error.__traceback__)[-1]
        return failure("failed", f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})")
    del result["wall_s"]  # equal points have equal rows
    return {"status": "ok", "error": None, **dict(_flat(result, ""))}


def failure(status: Status, error: object) -> Outcome:
    """Return the outcome of a run without a result."""
    return {"status": status, "error": " ".join(str(error).split())}


def _flat(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if prefix == "intervals.":
            yield from zip((f"{prefix}{name}.low", f"{prefix}{name}.high"), value, strict=True)
        elif isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", None if isinstance(value, float) and not math.isfinite(value) else value
