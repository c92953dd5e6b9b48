"""Context sums capped at an attention window."""

from __future__ import annotations

import heapq

from sim.request import Request

__all__ = ["Window"]


class Window:
    """The sum over the decodes of ``min(context, window)``, kept without visiting them.

    A sequence *grows* while the token that it computes next leaves its context below the window; the iteration in which
    it stops is known when it enters.
    """

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.growing = 0
        self._capped = 0
        self._offsets = 0
        self._crossings: list[tuple[int, int, int, Request]] = []

    def enter(self, request: Request, iteration: int) -> None:
        """Count a *request* that begins to decode when *iteration* iterations are done."""
        crossing = self.tokens - 1 - request.decode_offset
        if crossing <= iteration:
            self._capped += 1
            return
        self.growing += 1
        self._offsets += request.decode_offset
        heapq.heappush(self._crossings, (crossing, request.index, request.decode_ticket, request))

    def exit(self, request: Request, iteration: int) -> None:
        """Forget a *request* that stops decoding when *iteration* iterations are done."""
        if self.tokens - 1 - request.decode_offset <= iteration:
            self._capped -= 1
        else:
            self.growing -= 1
            self._offsets -= request.decode_offset

    def context_tokens(self, iteration: int) -> int:
        """Return the capped sum of the contexts after the iteration that follows *iteration* done ones."""
        return self.growing * (iteration + 1) + self._offsets + self._capped * self.tokens

    def next_crossing(self, iteration: int) -> float:
        """Return for how many iterations the set of growing sequences stays as it is."""
        heap = self._crossings
        while heap and heap[0][2] != heap[0][3].decode_ticket:
            heapq.heappop(heap)
        return heap[0][0] - iteration + 1 if heap else float("inf")

    def advance(self, iteration: int) -> None:
        """Move the sequences that have reached the window by *iteration* from the growing to the capped."""
        heap = self._crossings
        while heap and heap[0][0] <= iteration:
            _, _, ticket, request = heapq.heappop(heap)
            if ticket == request.decode_ticket:
                self.growing -= 1
                self._offsets -= request.decode_offset
                self._capped += 1
