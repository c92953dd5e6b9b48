"""What becomes of a request whose replica is lost."""

from __future__ import annotations

import math

from sim.failures import InFlight
from sim.request import Request, Status

__all__ = ["begin_again"]


def begin_again(request: Request, how: InFlight, max_retries: int) -> bool:
    """Put *request*, which has lost its replica, back to where another one can serve it; return whether one may.

    What it had in the KV cache is lost. With ``resume`` it keeps what it has emitted, as after a preemption; else its
    client gets a new answer, whose first token is the one that counts. If it may not begin again it has failed.
    """
    request.lost_tokens += request.computed_tokens
    request.computed_tokens = request.rejected_tokens = request.swapped_blocks = 0
    if how == "fail" or request.retries == max_retries:
        request.status = Status.FAILED
        request.reason = f"its replica was lost{f' {request.retries + 1} times' if request.retries else ''}"
        return False
    request.retries += 1
    request.status = Status.WAITING
    if how == "retry" and request.emitted_tokens:
        request.discarded_s += request.last_token_s - request.first_token_s
        request.emitted_tokens, request.first_token_s, request.last_token_s = 0, math.nan, math.nan
    return True
