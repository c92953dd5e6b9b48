"""One iteration of a run, taken apart: what it computed, and what that cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sim.batch import Batch
from sim.cost.operation import OperationTime
from sim.cost.step import RooflineStep
from sim.metrics.rows import StrideRows
from sim.simulate import Result
from sim.simulate.time_use import batch_of

__all__ = ["Moment", "moment_of"]


@dataclass(frozen=True, slots=True)
class Moment:
    """The middle iteration of a stride.

    Attributes
    ----------
    time_s, replica
        When its stride began, and where.
    seconds
        By operation; ``host`` is what the GPU does not hide. They sum to the iteration's time.
    operations
        What each operation on the GPU asks of each resource; empty where the cost model has no operations.
    """

    time_s: float
    replica: int
    batch: Batch
    seconds: Mapping[str, float]
    operations: Mapping[str, OperationTime]

    @property
    def total_s(self) -> float:
        """Time of the iteration [s]."""
        return sum(self.seconds.values())


def moment_of(result: Result, share: float = 0.5) -> Moment | None:
    """Return the iteration after *share* (0 to 1) of the busy time of a run; None where nothing ran.

    Its prompt chunks count as equal and without a past.
    """
    strides = result.strides
    if not len(strides.start_s):
        return None
    row = _row(strides, share)
    replica = int(strides.replica[row])
    cost = next(pool for pool in reversed(result.pools) if pool.first <= replica).setup.engine.cost
    batch = batch_of(strides, row, cost)
    operations = cost.operations(batch) if isinstance(cost, RooflineStep) else {}
    return Moment(float(strides.start_s[row]), replica, batch, cost.breakdown(batch), operations)


def _row(strides: StrideRows, share: float) -> int:
    busy_s = np.cumsum(strides.duration_s)
    return min(int(np.searchsorted(busy_s, share * busy_s[-1])), len(busy_s) - 1)
