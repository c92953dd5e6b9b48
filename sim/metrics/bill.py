"""What a run took in GPUs, money and power."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sim.metrics.pools import PoolSummary
from sim.metrics.ratio import ratio
from sim.metrics.served import Served
from sim.profiles.prices import GpuPrice

__all__ = ["Bill", "bill_of"]


@dataclass(frozen=True, slots=True)
class Bill:
    """What the pools of a run took together; None is unknown.

    *num_gpus* are paid for on average; *gpu_power_w* is of a board on average, *facility_power_w* of the deployment
    with servers and cooling; *price* is of one GPU, where all have the same.
    """

    served: Served
    num_gpus: float
    usd_per_hour: float | None
    power_w: float | None
    facility_power_w: float | None
    price: GpuPrice | None

    @property
    def usd_per_mtok_output(self) -> float | None:
        """Price of a million tokens of answers [$]."""
        return self._per_output(self.usd_per_hour, self.served.duration_s / 3600, self.served.output_tokens / 1e6)

    @property
    def joules_per_output_tok(self) -> float | None:
        """Energy of the boards for a token of an answer [J]."""
        return self._per_output(self.power_w, self.served.duration_s, self.served.output_tokens)

    @property
    def gpu_power_w(self) -> float | None:
        """What a board draws on average [W]."""
        return None if self.power_w is None else ratio(self.power_w, self.num_gpus)

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        return {
            "output_tok_s_per_gpu": ratio(self.served.output_tok_s, self.num_gpus),
            "total_tok_s_per_gpu": ratio(self.served.total_tok_s, self.num_gpus),
            "cost_usd_per_mtok_output": self.usd_per_mtok_output,
            "energy_j_per_output_tok": self.joules_per_output_tok,
            "gpu_power_w": self.gpu_power_w,
            "facility_power_w": self.facility_power_w,
            "price": None if self.price is None else self.price.as_dict(),
        }

    @staticmethod
    def _per_output(rate: float | None, time: float, tokens: float) -> float | None:
        return None if rate is None or not tokens else rate * time / tokens


def bill_of(pools: Sequence[PoolSummary], served: Served) -> Bill:
    """Add up what *pools* took for what they *served*."""
    prices = [pool.price for pool in pools]
    return Bill(
        served=served,
        num_gpus=sum(pool.num_gpus for pool in pools),
        usd_per_hour=_together([pool.usd_per_hour for pool in pools]),
        power_w=_together([pool.power_w for pool in pools]),
        facility_power_w=_together([pool.facility_power_w for pool in pools]),
        price=prices[0] if all(price == prices[0] for price in prices) else None,
    )


def _together(amounts: Sequence[float | None]) -> float | None:
    """Add up what is known of every pool; None if it is not known of one."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
