"""One deployment under any load: tests of it, with the same draws at every load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from sim.experiment import Experiment
from sim.slo import SLO
from sim.study.decision import Decision, decide
from sim.study.doubt import NOMINAL, Doubt
from sim.study.laboratory import Laboratory, altered
from sim.study.load import Load
from sim.study.measure import Measured
from sim.sweep import Settings

__all__ = ["Trial"]


@dataclass(frozen=True)
class Trial:
    """A deployment that is tested.

    Attributes
    ----------
    base
        The experiment, with its SLO.
    load
        How loads are written into it.
    settings
        What else differs from it, by dotted path.
    confidence
        Of each test.
    replications
        Most runs of a test.
    """

    base: Experiment
    load: Load
    laboratory: Laboratory
    confidence: float
    replications: int
    settings: Settings

    @cached_property
    def slo(self) -> SLO:
        """The objectives; raise a `ConfigError` without any."""
        if self.base.slo is None or not self.base.slo.root:
            raise self.base.error("slo", "missing: a search needs objectives, such as slo: {ttft_p95: 2 s}")
        return self.base.slo

    def with_settings(self, settings: Settings) -> Trial:
        """Return the same with *settings* as well."""
        return replace(self, settings={**self.settings, **settings})

    def experiment(self, amount: float, doubt: Doubt = NOMINAL) -> Experiment:
        """Return the experiment at *amount* of the load; raise `ConfigError` where it cannot be."""
        return altered(self.base, {**self.settings, **self.load.settings(amount, doubt.slower)})

    def decide(self, amount: float, doubt: Doubt = NOMINAL) -> Decision:
        """Test whether the SLO is kept at *amount* of the load, on a machine that differs as *doubt* says."""
        experiment = self.experiment(amount, doubt)

        def run(replication: int) -> Measured:
            seeded = experiment.model_copy(update={"seed": experiment.seed + replication})
            return self.laboratory.run(seeded)

        return decide(run, self.slo, doubt, self.confidence, self.replications)
