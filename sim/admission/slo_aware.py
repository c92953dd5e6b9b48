"""Shedding of what would come too late anyway."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.admission.base import Admission, Verdict
from sim.request import Request
from sim.router import Fleet
from sim.router.base import Load
from sim.router.gauge import Gauge, Staleness
from sim.router.least import Least
from sim.units import Seconds

__all__ = ["SloAware"]


class SloAware(Admission):
    """Turns away whom even the replica with the least pending work would give the first token later than *ttft_s*.

    The prediction is the prompt tokens before the first token there, and those of the request itself, over
    *prefill_tokens_per_s*. A gateway learns that speed from its engines; here it is given, such as the prompt tokens a
    second of a saturated run. As the early rejection of Mooncake (Qin et al., FAST'25, section 7), which turns away at
    the door what would miss its objective after being computed.
    """

    kind: Literal["slo_aware"] = "slo_aware"
    ttft_s: Seconds = Field(gt=0, description="Latest first token that is worth serving [s].")
    prefill_tokens_per_s: float = Field(gt=0, description="Prompt tokens that a replica computes in a second.")
    staleness_s: Staleness = 0.0

    def judge(self, fleet: Fleet) -> Verdict:
        """Keep the replicas in order of their pending work."""
        gauge = Gauge(fleet, _pending, self.staleness_s)
        least = Least(gauge)

        def verdict(request: Request) -> str:
            if not least:
                return ""
            predicted_s = (gauge[least.find()] + request.input_tokens) / self.prefill_tokens_per_s
            late = predicted_s > self.ttft_s
            return f"HTTP 429: the first token would come after more than {self.ttft_s:g} s" if late else ""

        return verdict


def _pending(replica: Load) -> float:
    return replica.pending_tokens
