"""What a scheduler decides."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from sim.batch import Blocked
from sim.request import Request

__all__ = ["Decision"]

Some = list[Request] | tuple[()]
"""Requests; mostly none, for which no list is made."""


@dataclass(slots=True)
class Decision:
    """What one iteration computes.

    Attributes
    ----------
    prefills
        Requests and how many tokens of their prompts are computed.
    decodes
        Whether the decoding requests compute a token each; their blocks are taken.
    preempted
        Requests put back into the queue.
    failed
        Requests given up for lack of KV cache.
    silenced, resumed
        Of the decodes: those that stop emitting with this iteration, preempted, given up or without token budget, and
        those that had no budget before and now have.
    blocked
        Why the head of the queue was not admitted, or why an arrival would not be.
    iterations
        How many iterations it stands at most, if it is `lasting`.
    exceptional
        Whether anybody is named but those in *prefills*.
    """

    prefills: list[tuple[Request, int]] = field(default_factory=list)
    decodes: bool = False
    preempted: Some = ()
    failed: Some = ()
    silenced: Some = ()
    resumed: Some = ()
    blocked: Blocked = Blocked.NO
    iterations: float = math.inf
    exceptional: bool = False

    @property
    def lasting(self) -> bool:
        """Whether it stands until a decode finishes, a block lacks or a request arrives that is not blocked."""
        return self.decodes and not (self.prefills or self.exceptional)

    def preempt(self, request: Request) -> None:
        """Note that *request* was put back into the queue."""
        self.preempted, self.exceptional = _with(self.preempted, request), True

    def fail(self, request: Request) -> None:
        """Note that *request* was given up."""
        self.failed, self.exceptional = _with(self.failed, request), True

    def silence(self, request: Request) -> None:
        """Note that *request* stops emitting, also if it was to go on with this iteration."""
        if request in self.resumed:
            self.resumed = [other for other in self.resumed if other is not request]
        else:
            self.silenced, self.exceptional = _with(self.silenced, request), True

    def resume(self, request: Request) -> None:
        """Note that *request* emits again."""
        self.resumed, self.exceptional = _with(self.resumed, request), True


def _with(requests: Some, request: Request) -> list[Request]:
    """Return *requests*, now a list, with one more."""
    longer = requests or []
    longer.append(request)
    return longer
