"""What a scheduler sees."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from sim.kv import KvCache
from sim.request import Request
from sim.scheduler.queue import Queue
from sim.scheduler.running import Running

__all__ = ["State"]


@dataclass(slots=True)
class State:
    """A replica as its scheduler sees it: who waits, who runs, the KV cache, and what the scheduler noted itself.

    *loads* are requests that were admitted to get their KV from another replica, and for how many tokens. While *held*,
    nobody is admitted: the other attention ranks have no prompts. *late* are those who came, and when [s], since the
    iteration under way began, where the next one was decided at that time.
    """

    waiting: Queue
    running: Running
    kv: KvCache
    notes: Any = None
    loads: list[tuple[Request, int]] = field(default_factory=list)
    held: bool = False
    late: deque[tuple[Request, float]] = field(default_factory=deque)

    @property
    def queued(self) -> int:
        """Requests that wait, the late ones included."""
        return len(self.waiting) + len(self.late)

    def take_in(self, until_s: float = math.inf) -> None:
        """Let the next decision see those of the late ones who came *until_s*."""
        while self.late and self.late[0][1] <= until_s:
            self.waiting.arrive(self.late.popleft()[0])

    def withdraw(self, request: Request) -> bool:
        """Forget *request* if it waits, and tell whether it did."""
        late = next((each for each in self.late if each[0] is request), None)
        if late is not None:
            self.late.remove(late)
        elif request in self.waiting:
            self.waiting.remove(request)
        else:
            return False
        return True

    def load(self, request: Request, hit: int) -> None:
        """Admit *request*, which has its blocks: the KV of its prompt, but for *hit* tokens, is to be sent here."""
        self.waiting.remove(request)
        self.running.load(request)
        self.kv.expect(request)
        self.loads.append((request, request.remote_tokens - hit))
        self.kv.pass_by(request, request.remote_tokens - request.computed_tokens)
        request.remote_tokens = 0
        request.cached_tokens -= hit  # it was looked up where the prompt was computed
