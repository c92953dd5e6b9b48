"""A month of serving: tokens, energy and carbon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sim.tco.costs import Costs
from sim.tco.finance import HOURS_A_MONTH, MONTHS_A_YEAR, SECONDS_A_MONTH

__all__ = ["Fleet", "Month", "Rates", "load_factor"]


@dataclass(frozen=True, slots=True)
class Fleet:
    """Accelerators that are paid for, and what they draw.

    Attributes
    ----------
    gpus
        Accelerators, spare ones included.
    limit_w
        Power limit of the boards together [W]; None: not published.
    idle_w, busy_w
        Draw of the boards together without work, and under the load of the experiment [W]; None: not known.
    """

    gpus: int
    limit_w: float | None = None
    idle_w: float | None = None
    busy_w: float | None = None

    def mean_w(self, load: float) -> float | None:
        """Return the draw of the boards at a share *load* of the experiment's load [W]."""
        if self.idle_w is None or self.busy_w is None:
            return None
        return self.idle_w + load * (self.busy_w - self.idle_w)


@dataclass(frozen=True, slots=True)
class Rates:
    """Tokens a second under the load of the experiment.

    Attributes
    ----------
    cached_tok_s
        Prompt tokens that were found in the prefix cache, a part of *input_tok_s*.
    prefill_share
        Share of the iteration time that goes into prompts.
    """

    input_tok_s: float
    output_tok_s: float
    cached_tok_s: float = 0.0
    prefill_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Month:
    """Millions of tokens, and what the data centre draws for them.

    Attributes
    ----------
    energy_kwh, carbon_kg
        With servers and cooling; carbon with a month's share of making the hardware; None: not known.
    """

    input_mtok: float
    cached_mtok: float
    output_mtok: float
    energy_kwh: float | None = None
    carbon_kg: float | None = None

    @property
    def total_mtok(self) -> float:
        """Millions of tokens, prompts and answers."""
        return self.input_mtok + self.output_mtok

    @classmethod
    def at(cls, rates: Rates, load: float, fleet: Fleet, costs: Costs) -> Month:
        """Return the month in which the mean load is the share *load* of the experiment's."""
        million = 1e-6 * load * SECONDS_A_MONTH
        tokens = cls(rates.input_tok_s * million, rates.cached_tok_s * million, rates.output_tok_s * million)
        boards_w = fleet.mean_w(load)
        if boards_w is None:
            return tokens
        energy_kwh = boards_w / 1e3 * costs.server_power_factor * costs.pue * HOURS_A_MONTH
        embodied_kg = fleet.gpus * costs.embodied_kg_per_gpu / (costs.amortisation_years * MONTHS_A_YEAR)
        return replace(tokens, energy_kwh=energy_kwh, carbon_kg=energy_kwh * costs.carbon_kg_per_kwh + embodied_kg)


def load_factor(hourly_rate: Sequence[float]) -> float:
    """Return the mean of a day over its busiest hour."""
    return sum(hourly_rate) / len(hourly_rate) / max(hourly_rate)
