"""The client: decides which request is sent next, and when. It keeps no clock of its own."""

from __future__ import annotations

import heapq
import math

from sim.request import Request
from sim.workload.drawn import Drawn
from sim.workload.traffic import Traffic

__all__ = ["Client"]


class Client:
    """Plays a `Traffic`: ask `next_s`, `send` then, and say when a request has `ended`, which may change `next_s`.

    Open loop: every request is sent at its arrival. With slots (a closed loop, or a limit of what is in flight) a
    request also waits for a slot, and its arrival becomes the time at which it is sent, since that is where clients
    such as ``vllm bench serve --max-concurrency`` begin to measure.

    Attributes
    ----------
    next_s
        When the next request is due [s]; infinite if none is, or not before another one has ended.
    """

    def __init__(self, traffic: Traffic) -> None:
        self._openers = iter(traffic.openers)
        self._opener = next(self._openers, None)
        self._drawn = traffic.requests if isinstance(traffic.requests, Drawn) else None
        self._follow_ups, self._think_s = traffic.follow_ups, traffic.think_s
        self._turns: list[tuple[float, int, Request]] = []  # follow-ups whose time is known, a heap
        self._slots = None if traffic.slots_open_s is None else sorted(traffic.slots_open_s.tolist())  # a heap too
        self.next_s = self._due_s()

    def send(self) -> Request:
        """Return the request that is due at `next_s`, its arrival set to that time."""
        if self._slots is not None:
            heapq.heappop(self._slots)
        request = self._pop()
        request.arrival_s = self.next_s
        self.next_s = self._due_s()
        return request

    def ended(self, request: Request, now_s: float) -> None:
        """Take note that *request* was answered, refused or lost at *now_s*: its slot and its session go on."""
        if self._drawn is not None:
            self._drawn.ended(request)
        if self._slots is not None:
            pause_s = 0.0 if self._think_s is None else float(self._think_s[request.index])
            heapq.heappush(self._slots, now_s + pause_s)
        turn = self._follow_ups.get(request.index)
        if turn is not None:
            heapq.heappush(self._turns, (now_s + turn.think_s, turn.index, turn))
        if turn is not None or self._slots is not None:
            self.next_s = self._due_s()

    def _due_s(self) -> float:
        if self._slots is None:
            return self._head_s()
        return max(self._head_s(), self._slots[0]) if self._slots else math.inf

    def _head_s(self) -> float:
        opener_s = math.inf if self._opener is None else self._opener.arrival_s
        return min(opener_s, self._turns[0][0]) if self._turns else opener_s

    def _pop(self) -> Request:
        opener = self._opener
        if self._turns and (opener is None or self._turns[0][:2] < (opener.arrival_s, opener.index)):
            return heapq.heappop(self._turns)[2]
        assert opener is not None
        self._opener = next(self._openers, None)
        return opener
