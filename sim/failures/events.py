"""Events of a script: what happens to the fleet, and when."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sim.section import Section
from sim.units import Seconds

__all__ = ["AnyEvent", "Drain", "Event", "Loss", "RollingUpdate", "RouterLoss", "Slow"]


class Event(Section):
    """Something that happens at a given time."""

    at_s: Seconds = Field(ge=0, description="When it happens [s].")


class Loss(Event):
    """Hardware breaks: every replica with a part in it dies whole, also one whose experts span several nodes."""

    what: Literal["gpu", "node", "link", "replica"] = Field(
        description="link: of one accelerator to the others, which stops replicas of several; replica: all of one."
    )
    which: int = Field(0, ge=0, description="Its number in the fleet, from 0, pool by pool.")
    for_s: Seconds = Field(gt=0, description="How long until it is repaired, and a replica may start there again [s].")


class Slow(Event):
    """A replica's iterations take longer, as with a throttled or sick accelerator, for which all its ranks wait."""

    what: Literal["slow"] = Field(description="A replica slows down.")
    which: int = Field(0, ge=0, description="Number of the replica in the fleet, from 0.")
    factor: float = Field(ge=1, le=1e3, description="How many times as long an iteration takes.")
    for_s: Seconds = Field(gt=0, description="How long it lasts [s].")


class Drain(Event):
    """A replica gets no more requests, answers those it has, and is replaced."""

    what: Literal["drain"] = Field(description="A replica is drained.")
    which: int = Field(0, ge=0, description="Number of the replica in the fleet, from 0.")


class RollingUpdate(Event):
    """All replicas are replaced, some at a time, as a Kubernetes Deployment does."""

    what: Literal["rolling_update"] = Field(description="Every replica is replaced.")
    max_unavailable: int = Field(0, ge=0, description="Replicas that may be missing from each pool meanwhile.")
    max_surge: int = Field(1, ge=0, description="Replicas that each pool may have too many meanwhile.")

    @model_validator(mode="after")
    def _moves(self) -> Self:
        if not self.max_unavailable and not self.max_surge:
            raise ValueError("max_unavailable and max_surge are both 0: nothing could ever be replaced")
        return self


class RouterLoss(Event):
    """The router routes nothing; answers under way go on, since engines send them past it."""

    what: Literal["router"] = Field(description="The router is lost.")
    for_s: Seconds = Field(gt=0, description="How long it is away [s].")


AnyEvent = Annotated[Loss | Slow | Drain | RollingUpdate | RouterLoss, Field(discriminator="what")]
