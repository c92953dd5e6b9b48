"""What an accelerator costs: offers with their kind, source and date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from sim.profiles.base import Profile
from sim.section import Section

__all__ = ["RENTED", "CardPrice", "GpuPrice", "Offer", "PriceKind", "PriceList"]

PriceKind = Literal["on_demand", "reserved", "spot", "tco", "purchase"]
"""``tco`` is what an hour of an owned card costs its operator, all in; ``purchase`` the card alone, the others rent."""
RENTED: tuple[PriceKind, ...] = ("on_demand", "reserved", "tco")
"""Kinds by the hour in the order in which a price that nobody chose is looked for: spot capacity may be taken away."""
_Usd = Annotated[float, Field(gt=0)]


class Offer(Section):
    """One published figure."""

    kind: PriceKind = Field(description="How it is paid for.")
    usd: _Usd = Field(description="One accelerator, by the hour [$/h]; of a purchase, once [$].")
    range_usd: tuple[_Usd, _Usd] | None = Field(None, description="Published range around it, in the same unit.")
    provider: str = Field("", description="Whose price, or over whom it is an average.")
    date: str = Field(description="When it was published or collected, as exactly as known.")
    source: str = Field(description="Where it stands.")

    @property
    def statement(self) -> str:
        """What it is, in a few words: ``on demand, average of 47 providers, 2026-06-28``."""
        return ", ".join(filter(None, (self.kind.replace("_", " "), self.provider, self.date)))


class PriceList(Profile):
    """Offers for one accelerator, those of a kind with the one to count with first."""

    offers: tuple[Offer, ...] = Field(min_length=1, description="Published figures.")

    def offer(self, *kinds: PriceKind) -> Offer | None:
        """Return the first offer of the first of *kinds* that has any; None if none has."""
        return next((offer for kind in kinds for offer in self.offers if offer.kind == kind), None)


@dataclass(frozen=True, slots=True)
class GpuPrice:
    """The price of one accelerator by the hour, and where it is from.

    Attributes
    ----------
    usd_per_hour
        [$/h].
    offer
        The published figure that was taken for want of another; None where the experiment gives the price.
    """

    usd_per_hour: float
    offer: Offer | None = None

    @property
    def statement(self) -> str:
        """The price with its origin: ``$3.13 per GPU-hour (default: on demand, ...)``."""
        return f"${self.usd_per_hour:.2f} per GPU-hour ({_origin(self.offer)})"

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        published = {} if self.offer is None else self.offer.model_dump(include={"kind", "provider", "date", "source"})
        return {"gpu_hour_usd": self.usd_per_hour, "default": self.offer is not None, **published}


@dataclass(frozen=True, slots=True)
class CardPrice:
    """The price of buying one accelerator without its server [$], and where it is from, as in `GpuPrice`."""

    usd: float
    offer: Offer | None = None

    @property
    def statement(self) -> str:
        """The price with its origin: ``$30,000 each (default: purchase, ...)``."""
        return f"${self.usd:,.0f} each ({_origin(self.offer)})"


def _origin(offer: Offer | None) -> str:
    return "as given" if offer is None else f"default: {offer.statement}"
