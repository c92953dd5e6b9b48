"""Those who wait, in the order in which they are served."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable
from typing import Literal

from sim.request import Request

__all__ = ["Order", "Queue"]

Order = Literal["fcfs", "priority", "shortest_job_first"]

_KEYS: dict[Order, Callable[[Request], tuple[float, ...]]] = {
    "priority": lambda request: (request.priority, request.queued_s, request.index),
    "shortest_job_first": lambda request: (request.total_tokens, request.queued_s, request.index),
}


class Queue(deque[Request]):
    """A queue whose left end is served first.

    ``fcfs`` is first come, first served, with preempted requests at the front. ``priority`` serves lower values first,
    as in vLLM (`v1/core/sched/request_queue.py`), ``shortest_job_first`` the fewest tokens of prompt and answer, which
    a real engine would have to predict; both then go by arrival, also for preempted requests.
    """

    def __init__(self, order: Order = "fcfs") -> None:
        super().__init__()
        self._key = _KEYS.get(order)

    def arrive(self, request: Request) -> None:
        """Take in a *request* that has not run yet."""
        if self._key is None:
            self.append(request)
        else:
            insort(self, request, key=self._key)

    def leads(self, request: Request) -> bool:
        """Tell whether *request*, which is not here yet, would be served first."""
        return not self or (self._key is not None and self._key(request) < self._key(self[0]))

    def put_back(self, request: Request) -> None:
        """Take in a *request* that was preempted."""
        if self._key is None:
            self.appendleft(request)
        else:
            insort(self, request, key=self._key)
