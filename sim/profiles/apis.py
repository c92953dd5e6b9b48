"""What others charge by the token for a model."""

from __future__ import annotations

from pydantic import Field

from sim.profiles.base import Profile
from sim.section import Section

__all__ = ["ApiList", "ApiOffer", "ApiPrice", "from_genai_prices"]


class ApiPrice(Section):
    """What an API charges for a million tokens."""

    input_usd_per_mtok: float = Field(ge=0, description="Prompt tokens [$ per million].")
    cached_input_usd_per_mtok: float | None = Field(
        None, ge=0, description="Prompt tokens that hit its cache; missing: as other prompt tokens [$ per million]."
    )
    output_usd_per_mtok: float = Field(ge=0, description="Tokens of answers [$ per million].")


class ApiOffer(ApiPrice):
    """One provider's price for a model."""

    provider: str = Field(description="Who serves it.")
    model: str = Field(description="Its name there.")

    @property
    def title(self) -> str:
        """Provider and model, as an experiment names the offer."""
        return f"{self.provider} {self.model}"


class ApiList(Profile):
    """Offers for the model that it is called after, or for models of the frontier."""

    date: str = Field(description="When the prices were read.")
    offers: tuple[ApiOffer, ...] = Field(min_length=1, description="By provider.")


def from_genai_prices(title: str) -> ApiPrice | None:
    """Return the price of *title* (provider, a space, model) from the package ``genai-prices``.

    Returns
    -------
    ApiPrice | None
        None if the package is not installed, or does not know the model.
    """
    try:
        import genai_prices
    except ImportError:
        return None
    provider, _, model = title.partition(" ")
    thousand = genai_prices.Usage(input_tokens=1000, output_tokens=1000)  # below every tier of long prompts
    try:
        price = genai_prices.calc_price(thousand, model, provider_id=provider)
    except LookupError:
        return None
    prompts, answers = (float(1000 * usd) for usd in (price.input_price, price.output_price))
    return ApiPrice(input_usd_per_mtok=prompts, output_usd_per_mtok=answers)
