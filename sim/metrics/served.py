"""How much a run served, and how fast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sim.metrics.classes import good
from sim.metrics.ratio import ratio
from sim.metrics.rows import RequestRows
from sim.request import Status
from sim.slo import SLO

__all__ = ["Served", "served_in"]


@dataclass(frozen=True, slots=True)
class Served:
    """What became of the requests; tokens are those of completed ones.

    *goodput* counts completed requests within every bound of their objectives, per second; None without any.
    """

    duration_s: float
    completed: int
    failed: int
    rejected: int
    input_tokens: int
    output_tokens: int
    goodput: float | None

    @property
    def requests_per_s(self) -> float:
        """Completed requests a second."""
        return ratio(self.completed, self.duration_s)

    @property
    def input_tok_s(self) -> float:
        """Tokens of prompts a second."""
        return ratio(self.input_tokens, self.duration_s)

    @property
    def output_tok_s(self) -> float:
        """Tokens of answers a second."""
        return ratio(self.output_tokens, self.duration_s)

    @property
    def total_tok_s(self) -> float:
        """Tokens of prompts and answers a second."""
        return ratio(self.input_tokens + self.output_tokens, self.duration_s)

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        return {
            "completed": self.completed,
            "failed": self.failed,
            "rejected": self.rejected,
            "duration": self.duration_s,
            "total_input_tokens": self.input_tokens,
            "total_output_tokens": self.output_tokens,
            "request_throughput": self.requests_per_s,
            "request_goodput": self.goodput,
            "output_throughput": self.output_tok_s,
            "total_token_throughput": self.total_tok_s,
        }


def served_in(
    duration_s: float, requests: RequestRows, slo: SLO | None, class_slos: Mapping[str, SLO | None]
) -> Served:
    """Count what was served in a run of *duration_s* [s]."""
    completed = requests.completed
    rejected = requests.status == Status.REJECTED
    within = good(requests, slo, class_slos)
    return Served(
        duration_s=duration_s,
        completed=int(completed.sum()),
        failed=int((~completed & ~rejected).sum()),
        rejected=int(rejected.sum()),
        input_tokens=int(requests.input_tokens[completed].sum()),
        output_tokens=int(requests.emitted_tokens[completed].sum()),
        goodput=None if within is None else ratio(int(within.sum()), duration_s),
    )
