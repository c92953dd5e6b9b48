"""A number of equal replicas under the load, and whether they keep the SLO."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from sim.simulate import Setup, prepare
from sim.study.bisection import first_true
from sim.study.bounds import Bounds
from sim.study.candidates import Candidate
from sim.study.decision import Decision
from sim.study.doubt import NOMINAL, Doubt
from sim.study.estimate import estimated_replicas
from sim.study.load import Lengths, Load
from sim.study.measure import Measured
from sim.study.trial import Trial
from sim.sweep import Settings

__all__ = ["SIMULATED", "Fleet"]

SIMULATED = 16
"""Most replicas that are simulated at once: of more, so many under their share of the load, which is cautious, since a
router has less choice among few."""


@dataclass(frozen=True)
class Fleet:
    """Replicas of a *candidate*, for a load: `Fleet.test` says for a number of them whether they keep the SLO.

    The *lengths* are those of the workload; the *trial* is of the experiment.
    """

    candidate: Candidate
    trial: Trial
    lengths: Lengths
    tested: dict[tuple[float, int], Decision] = field(default_factory=dict)

    @property
    def load(self) -> Load:
        """The load."""
        return self.trial.load

    @cached_property
    def setup(self) -> Setup:
        """One replica made ready; raise `InfeasibleError` or `ConfigError` if it cannot be."""
        return prepare(self.trial.with_settings(self.candidate.settings).experiment(self.load.amount))

    @cached_property
    def bounds(self) -> Bounds:
        """What it cannot beat."""
        return Bounds(self.setup, self.lengths)

    @cached_property
    def least_replicas(self) -> int:
        """Replicas that the peak takes at least, by the time that the tokens take."""
        return self.bounds.least_replicas(self.load.peak) if self.load.unit == "rate" else 1

    @cached_property
    def likely_replicas(self) -> int:
        """Replicas that the peak may take."""
        return estimated_replicas(self.setup, self.lengths, self.trial.slo, self.load)

    def test(self, replicas: int, doubt: Doubt = NOMINAL) -> Decision:
        """Test whether that many *replicas* keep the SLO at the peak, on a machine that differs as *doubt* says."""
        key = doubt.deviates, replicas
        if key not in self.tested:
            amount, settings = self._share(self.load.peak, replicas)
            self.tested[key] = self.trial.with_settings(settings).decide(amount, doubt)
        return self.tested[key]

    def run(self, amount: float, replicas: int) -> tuple[Measured, float]:
        """Return the run of *amount* of the load on that many *replicas*, and how many times it stands for."""
        share, settings = self._share(amount, replicas)
        trial = self.trial.with_settings(settings)
        return trial.laboratory.run(trial.experiment(share)), amount / share

    def fewest(self, doubt: Doubt, start: int, low: int, high: int) -> int | None:
        """Return the fewest replicas in ``[low, high]`` that keep the SLO, looked for from *start*; None: none do."""
        if low > high:
            return None
        return first_true(lambda replicas: self.test(replicas, doubt).met, start, low, high)

    def _share(self, amount: float, replicas: int) -> tuple[float, Settings]:
        simulated = replicas if self.load.unit == "speed" else min(replicas, SIMULATED)
        return amount * simulated / replicas, {**self.candidate.settings, "deployment.replicas": simulated}
