"""Figures of a run by name, under any settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sim.errors import did_you_mean
from sim.experiment import Experiment
from sim.slo import SLO
from sim.study.laboratory import Laboratory, altered
from sim.study.measure import Measured
from sim.sweep import Settings

__all__ = ["Figures"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Runs of *base* under settings by dotted path."""

    base: Experiment
    laboratory: Laboratory

    def of(self, settings: Settings, names: Sequence[str]) -> dict[str, float]:
        """Return the figures of those *names*; `nan` where one is not known.

        Names are clauses of the SLO [ms], ``output_throughput``, ``request_throughput``, ``usd_per_mtok`` of output,
        and the other numbers of a `Measured`, such as ``p95_ttft_ms``.

        Raises
        ------
        ConfigError
            There is no such figure.
        """
        known = _known(self._run(settings))
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known) or f": choose of {', '.join(sorted(known))}"
                raise self.base.error("search.outputs", f"no figure {name!r}{hint}")
        return {name: known[name] for name in names}

    def missed(self, settings: Settings) -> str:
        """Return the first objective that the run misses, ``overload`` where its queue only grows; empty if none."""
        run = self._run(settings)
        if run.overloaded:
            return "overload"
        slo = self.base.slo or SLO({})
        bounds = {clause.name: clause.bound_s for clause in slo.clauses} | dict.fromkeys(slo.shares, 1.0)
        return next((name for name, bound in bounds.items() if run.values_s[name] > bound), "")

    def _run(self, settings: Settings) -> Measured:
        return self.laboratory.run(altered(self.base, settings))


def _known(run: Measured) -> dict[str, float]:
    numbers = {
        name: math.nan if value is None else float(value)
        for name, value in run.figures.items()
        if value is None or isinstance(value, int | float)
    }
    clauses = {name: 1e3 * value_s for name, value_s in run.values_s.items()} | dict(run.shares)
    usd = run.usd_per_hour
    return {
        **numbers,
        **clauses,
        "request_throughput": run.requests_per_s,
        "output_throughput": run.output_tok_s,
        "usd_per_mtok": math.nan if usd is None or not run.output_tok_s else usd / 3600 / run.output_tok_s * 1e6,
    }
