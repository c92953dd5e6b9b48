"""The section ``failures:`` of an experiment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from sim.failures.events import AnyEvent
from sim.section import Section
from sim.units import Seconds

__all__ = ["Failures", "InFlight", "Rate"]

InFlight = Literal["retry", "resume", "fail"]
"""What becomes of a request whose replica is lost."""


class Rate(Section):
    """How often a thing breaks, and how long its repair takes."""

    mtbf_s: Seconds = Field(ge=1, description="Mean time between failures of one of them [s].")
    repair_s: Seconds = Field(gt=0, description="Mean time until it is back, or another one is in its place [s].")
    repair: Literal["exponential", "fixed"] = Field("exponential", description="How repair times are distributed.")


class Failures(Section):
    """What breaks by itself and by a script, and what becomes of the requests that it hits.

    Of 16,384 H100 in 54 days of training 419 unexpected interruptions were published, one in 50,677 GPU-hours ("The
    Llama 3 Herd of Models", arXiv 2407.21783, table 5): ``gpu: {mtbf_s: 50677 h, repair_s: ...}``. Nobody published
    repair times.
    """

    gpu: Rate | None = Field(None, description="Accelerators that break; missing: none does.")
    node: Rate | None = Field(None, description="Nodes that break, beside their accelerators; missing: none does.")
    link: Rate | None = Field(None, description="Links of accelerators to each other that break; missing: none does.")
    gpus_per_node: int = Field(8, ge=1, le=1024, description="Accelerators of a node.")
    events: tuple[AnyEvent, ...] = Field((), description="What happens at given times.")
    in_flight: InFlight = Field(
        "retry",
        description="Requests of a lost replica start again elsewhere (retry), go on elsewhere with the tokens that"
        " clients have (resume, as Dynamo's request migration), or fail.",
    )
    max_retries: int = Field(
        3, ge=0, description="How often a request is sent to another replica before it fails, as Dynamo advises."
    )

    def rates(self) -> Iterator[tuple[str, Rate]]:
        """Yield what breaks by itself, and how often."""
        for what in ("gpu", "node", "link"):
            rate = getattr(self, what)
            if rate is not None:
                yield what, rate

    @property
    def max_surge(self) -> int:
        """Most replicas that a pool has too many at a time."""
        return max((event.max_surge for event in self.events if event.what == "rolling_update"), default=0)
