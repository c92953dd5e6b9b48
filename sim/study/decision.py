"""Does a deployment keep the SLO under a load? As many runs as it takes to tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sim.slo import SLO
from sim.study.doubt import Doubt
from sim.study.measure import Measured

__all__ = ["Decision", "decide"]

_BATCH_FREEDOM = 9  # ten batches
_HOPELESS = -1.0  # logarithm: missed by a factor of 2.7, whatever the noise


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer of a test.

    Attributes
    ----------
    met
        The SLO is kept.
    margin
        Logarithm of bound over value of the objective that is closest to its bound, on average over the runs.
    objective
        That objective; ``overload`` where the queue only grows, ``too short`` where no run was long enough to tell.
    sure
        The margin is beyond the noise at the confidence asked for.
    noise
        Standard error of the margin; None: unknown.
    runs
        One a replication.
    """

    met: bool
    margin: float
    objective: str
    sure: bool
    noise: float | None
    runs: tuple[Measured, ...]

    @property
    def typical(self) -> Measured:
        """The first run, with the percentiles that all runs together say: their geometric means."""
        first = self.runs[0]
        means_s = {name: self._mean([run.values_s[name] for run in self.runs]) for name in first.values_s}
        return replace(first, values_s=means_s)

    @staticmethod
    def _mean(values: Sequence[float]) -> float:
        if not all(math.isfinite(value) and value > 0 for value in values):
            return max(values)
        return math.exp(sum(map(math.log, values)) / len(values))


def decide(
    run: Callable[[int], Measured], slo: SLO, doubt: Doubt, confidence: float, most: int
) -> Decision:
    """Test the *slo* with one run after the other until the noise is small enough, *most* of them at most.

    A sequence of t tests on the margin: the noise of a run comes from its batches, or from the spread of runs where its
    batches are too small to tell a percentile.

    Parameters
    ----------
    run
        Makes the run with the number of the replication, from 0: the same numbers at every load, so that loads are
        compared under the same draws.
    doubt
        The machine that must keep it, at the speed of which `run` plays.
    """
    runs: list[Measured] = []
    margins: list[float] = []
    while True:
        runs.append(run(len(runs)))
        margin, objective = _margin(runs[-1], slo, doubt)
        if not runs[-1].settled or margin < _HOPELESS:
            return Decision(False, min(margin, 0.0), _unsettled(runs[-1]) or objective, True, None, tuple(runs))
        margins.append(margin)
        mean = sum(margins) / len(margins)
        noise, freedom = _noise(runs, margins, objective)
        sure = noise is not None and abs(mean) > _student(confidence, freedom) * noise
        if sure or len(runs) >= most or math.isinf(mean):
            return Decision(mean >= 0, mean, objective, sure or math.isinf(mean), noise, tuple(runs))


def _unsettled(run: Measured) -> str:
    """Return why a run says nothing of a steady state, if it does not."""
    return "overload" if run.overloaded else "" if run.settled else "too short"


def _margin(run: Measured, slo: SLO, doubt: Doubt) -> tuple[float, str]:
    """Return the smallest logarithm of bound over value, and whose it is."""
    margins = {
        clause.name: _log_ratio(clause.bound_s, run.values_s[clause.name] * doubt.longer(clause.latency))
        for clause in slo.clauses
    }
    longest = max((doubt.longer(clause.latency) for clause in slo.clauses), default=1.0)
    margins |= {name: _log_ratio(1.0, run.values_s[name] * longest) for name in slo.shares}
    objective = min(margins, key=lambda name: margins[name])
    return margins[objective], objective


def _log_ratio(bound_s: float, value_s: float) -> float:
    if math.isinf(value_s):
        return -math.inf
    return math.log(bound_s / value_s) if value_s > 0 else math.inf


def _noise(runs: Sequence[Measured], margins: Sequence[float], objective: str) -> tuple[float | None, int]:
    """Return the standard error of the mean margin and its degrees of freedom."""
    count = len(runs)
    inside = [error for run in runs if (error := run.errors[objective]) is not None]
    if len(inside) == count:
        return math.sqrt(sum(error**2 for error in inside) / count / count), _BATCH_FREEDOM * count
    if count < 2:
        return None, 0
    mean = sum(margins) / count
    return math.sqrt(sum((margin - mean) ** 2 for margin in margins) / (count - 1) / count), count - 1


def _student(confidence: float, freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, confidence))


