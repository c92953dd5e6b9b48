"""So many requests or tokens a second, and a little more at once."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.admission.base import Admission, Verdict
from sim.request import Request
from sim.router import Fleet

__all__ = ["TokenBucket"]


class TokenBucket(Admission):
    """A bucket that fills at *rate* up to *burst*, from which every request takes what it costs, or is turned away.

    It costs 1 request, or its prompt in tokens. Quotas of hosted APIs in requests and tokens a minute work like this,
    for each customer: *each* tenant has a bucket of its own then. Protected requests take what is there.
    """

    kind: Literal["token_bucket"] = "token_bucket"
    rate: float = Field(gt=0, description="What it fills by, in its unit a second [requests/s].")
    burst: float = Field(gt=0, description="What it holds, in its unit; it begins full.")
    unit: Literal["requests", "tokens"] = Field("requests", description="tokens: those of prompts.")
    each: Literal["all", "tenant", "class"] = Field("all", description="Who shares a bucket.")

    def judge(self, fleet: Fleet) -> Verdict:
        """Begin with full buckets."""
        buckets: dict[str, tuple[float, float]] = {}  # owner -> what was in it, and when [s]

        def verdict(request: Request) -> str:
            owner = self._owner(request)
            left, since_s = buckets.get(owner, (self.burst, request.arrival_s))
            left = min(left + (request.arrival_s - since_s) * self.rate, self.burst)
            cost = 1 if self.unit == "requests" else request.input_tokens
            enough = left >= cost
            buckets[owner] = (left - cost if enough else left, request.arrival_s)
            return "" if enough else f"HTTP 429: over {self.rate:g} {self.unit}/s{f' of {owner}' if owner else ''}"

        return verdict

    def _owner(self, request: Request) -> str:
        return {"all": "", "tenant": request.tenant, "class": request.traffic_class}[self.each]
