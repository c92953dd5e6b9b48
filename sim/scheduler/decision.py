"""What a scheduler decides."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from sim.batch import Blocked
from sim.request import Request

__all__ = ["Decision"]


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
    """

    prefills: list[tuple[Request, int]] = field(default_factory=list)
    decodes: bool = False
    preempted: list[Request] = field(default_factory=list)
    failed: list[Request] = field(default_factory=list)
    silenced: list[Request] = field(default_factory=list)
    resumed: list[Request] = field(default_factory=list)
    blocked: Blocked = Blocked.NO
    iterations: float = math.inf

    @property
    def lasting(self) -> bool:
        """Whether it stands until a decode finishes, a block lacks or a request arrives that is not blocked."""
        return self.decodes and not (self.prefills or self.silenced or self.resumed or self.preempted or self.failed)
