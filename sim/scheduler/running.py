"""The admitted requests of a replica; those that decode are kept as sums, so that no iteration visits each of them."""

from __future__ import annotations

import heapq

from sim.batch import Batch
from sim.request import Request, Status
from sim.scheduler.window import Window

__all__ = ["Running"]


class Running:
    """Admitted requests in admission order, those that decode summed up.

    While a set of sequences decodes, each computes one token an iteration. So with *i* decode iterations done,
    one's computed tokens are ``i + decode_offset``; it finishes at a known *i*; and it needs a new block
    whenever ``(i + decode_offset) % block_size == 0``. A heap of finishes, the sum of offsets and a histogram
    of those remainders answer every question about the next iterations in time that does not depend on how many
    sequences there are.

    Parameters
    ----------
    block_size
        Tokens of a KV block.
    windows
        Attention windows [tokens] whose capped context sums the cost model needs.

    Attributes
    ----------
    order
        All admitted requests in admission order; each is in one of the next four or decodes.
    prefilling
        Those whose prompt (after a preemption: prompt and emitted tokens) is not computed yet.
    stalled
        Those that would decode but got no token budget.
    padding
        Finished rows that their static batch still carries.
    loading
        Those whose blocks are taken while the KV of their prompt is on its way from another replica.
    decoding
        How many decode.
    structured
        How many of these have a grammar.
    promised_tokens, promised_blocks
        What all admitted requests will have in the KV cache when each is as long as it gets.
    iteration
        Decode iterations done.
    tokens_each
        Tokens that each decode may compute in an iteration, and needs room for.
    computed_each
        Those that it computes on average: fewer where some have no draft.
    """

    tokens_each = 1
    computed_each: float = 1

    def __init__(self, block_size: int, windows: tuple[int, ...] = ()) -> None:
        self.order: dict[Request, None] = {}
        self.prefilling: dict[Request, None] = {}
        self.stalled: dict[Request, None] = {}
        self.padding: dict[Request, None] = {}
        self.loading: dict[Request, None] = {}
        self.decoding = self.structured = 0
        self.promised_tokens = self.promised_blocks = 0
        self.iteration = 0
        self.windows = [Window(tokens) for tokens in windows]
        self._admissions = 0
        self._offsets = 0
        self._block_size, self._new_blocks = block_size, [0] * block_size
        self._finishes: list[tuple[int, int, int, Request]] = []

    def __len__(self) -> int:
        return len(self.order)

    @property
    def last(self) -> Request:
        """The request that was admitted last."""
        return next(reversed(self.order))

    def admit(self, request: Request) -> None:
        """Take *request* in as the last admitted; it prefills first."""
        self._admissions += 1
        self.promised_tokens += request.total_tokens
        self.promised_blocks += self._most_blocks(request)
        request.admission, request.status = self._admissions, Status.RUNNING
        self.order[request] = self.prefilling[request] = None

    def load(self, request: Request) -> None:
        """Take *request* in as the last admitted; it decodes from when its KV is there."""
        self.admit(request)
        del self.prefilling[request]
        self.loading[request] = None

    def leave(self, request: Request) -> None:
        """Remove *request*, which has finished or is preempted."""
        del self.order[request]
        self.promised_tokens -= request.total_tokens
        self.promised_blocks -= self._most_blocks(request)
        if self.is_decoding(request):
            self._stop_decoding(request)
        else:
            for waiting in (self.prefilling, self.stalled, self.padding, self.loading):
                waiting.pop(request, None)
        request.admission = -1

    def begin_decoding(self, request: Request) -> None:
        """Move *request*, all of whose tokens but the last emitted are computed, to the decodes."""
        iteration = self.iteration
        self._join_decodes(request, iteration + request.output_tokens - request.emitted_tokens)
        offset = request.decode_offset = request.computed_tokens - iteration
        self._offsets += offset
        self._new_blocks[-offset % self._block_size] += 1
        for window in self.windows:
            window.enter(request, iteration)

    def is_decoding(self, request: Request) -> bool:
        """Tell whether *request*, which is admitted, is one of the decodes."""
        return request.decode_ticket % 2 == 1

    def stall(self, request: Request) -> None:
        """Let a decoding *request* wait for token budget."""
        self._stop_decoding(request)
        self.stalled[request] = None

    def pad(self, request: Request) -> None:
        """Keep *request*, which has emitted its last token, as a row that pads its static batch."""
        if self.prefilling.pop(request, request) is request:
            self._stop_decoding(request)
        self.padding[request] = None

    def settle(self, request: Request) -> None:
        """Bring the token counts of *request* up to date if it decodes; of others they are."""
        if self.is_decoding(request):
            self._update(request)

    @property
    def decode_tokens(self) -> int:
        """Tokens that all decodes compute in an iteration."""
        return self.decoding * self.tokens_each

    def computed_tokens(self, request: Request) -> int:
        """Return the tokens that *request*, which decodes, has computed."""
        return self.iteration + request.decode_offset

    def emits(self, iterations: int) -> int:
        """Return the tokens that the decodes emit in the next *iterations*."""
        return self.decoding * iterations

    def context_tokens(self) -> int:
        """Return the sum over the decodes of their tokens after the next iteration."""
        return self.decoding * (self.iteration + 1) + self._offsets

    def blocks_now(self) -> int:
        """Return the KV blocks that the decodes take in the next iteration."""
        return self._new_blocks[self.iteration % self._block_size]

    def batch(self) -> Batch:
        """Return what the decodes compute in the next iteration."""
        decodes, each = self.decoding, self.computed_each
        masks = round(self.structured * each) if self.structured else 0
        sampled = decodes * each
        return Batch((), decodes, self.context_tokens(), self.window_tokens(), 0, sampled, masks, None, each)

    def new_blocks(self, iterations: int, *, after: int = 0) -> int:
        """Return the KV blocks that the decodes take in *iterations* iterations, which follow the next *after* ones."""
        size = self._block_size
        cycles, rest = divmod(iterations, size)
        first = (self.iteration + after) % size
        once = self._new_blocks[first : first + rest]
        wrapped = self._new_blocks[: first + rest - size] if first + rest > size else ()
        return cycles * self.decoding + sum(once) + sum(wrapped)

    def affordable(self, blocks: int, *, after: int = 0) -> int:
        """Return how many iterations, which follow the next *after* ones, *blocks* free blocks suffice for."""
        size = self._block_size
        cycles, left = divmod(blocks, self.decoding)
        start = self.iteration + after
        for j in range(size):
            left -= self._new_blocks[(start + j) % size]
            if left < 0:
                return cycles * size + j
        return (cycles + 1) * size

    def blocks_during(self, iterations: int) -> int:
        """Return how many blocks more are in use in the last of *iterations*, whose first has its own."""
        return self.new_blocks(iterations - 1, after=1) if iterations > 1 else 0

    def blocks_moved(self, iterations: int) -> tuple[int, int]:
        """Return the most blocks that *iterations*, whose first has its own, lack at a time, and in the end."""
        blocks = self.blocks_during(iterations)
        return blocks, blocks

    def within(self, iterations: int, free: int, *, till_more: bool) -> int:
        """Return for how many of *iterations*, whose first has its own, *free* further blocks suffice.

        With *till_more*, stop before one that begins with more free blocks than the first: there is none.
        """
        at_most = (iterations // self._block_size + 1) * self.decoding  # mostly that answers it
        if at_most > free and self.new_blocks(iterations - 1, after=1) > free:
            return 1 + self.affordable(free, after=1)
        return iterations

    def window_tokens(self) -> tuple[int, ...]:
        """Return `context_tokens` capped at each window."""
        return tuple([window.context_tokens(self.iteration) for window in self.windows]) if self.windows else ()

    def next_change(self) -> float:
        """Return for how many iterations nobody finishes before the last, and nobody's context reaches a window."""
        if not self.windows:
            return self.next_finish()
        return min(self.next_finish(), *[window.next_crossing(self.iteration) for window in self.windows])

    def next_finish(self) -> int:
        """Return the iterations up to and including the one in which the next decode finishes."""
        finishes = self._finishes
        while finishes[0][2] != finishes[0][3].decode_ticket:  # it has left
            heapq.heappop(finishes)
        return finishes[0][0] - self.iteration

    def advance(self, iterations: int) -> list[Request]:
        """Let every decode compute *iterations* tokens; return those that have finished, in admission order."""
        self.iteration += iterations
        for window in self.windows:
            window.advance(self.iteration)
        done, finishes = [], self._finishes
        while finishes and finishes[0][0] <= self.iteration:
            _, _, ticket, request = heapq.heappop(finishes)
            if ticket == request.decode_ticket:
                done.append(request)
        return done

    def _most_blocks(self, request: Request) -> int:
        return -(-(request.total_tokens + self.tokens_each - 1) // self._block_size)

    def _update(self, request: Request) -> None:
        """Bring the token counts of *request*, which decodes, up to date."""
        computed = request.computed_tokens = self.iteration + request.decode_offset
        request.emitted_tokens = computed - request.input_tokens + 1

    def _join_decodes(self, request: Request, finish: int) -> None:
        """Count *request*, which finishes with iteration *finish*, among the decodes."""
        if self.prefilling.pop(request, request) is request:
            self.stalled.pop(request, None)
            self.loading.pop(request, None)
        request.decode_ticket += 1
        heapq.heappush(self._finishes, (finish, request.admission, request.decode_ticket, request))
        self.decoding += 1
        if request.schema:
            self.structured += 1

    def _leave_decodes(self, request: Request) -> None:
        """Bring the token counts of *request* up to date, and count it among the decodes no more."""
        self._update(request)
        request.decode_ticket += 1
        self.decoding -= 1
        if request.schema:
            self.structured -= 1

    def _stop_decoding(self, request: Request) -> None:
        self._leave_decodes(request)
        offset = request.decode_offset
        self._offsets -= offset
        self._new_blocks[-offset % self._block_size] -= 1
        for window in self.windows:
            window.exit(request, self.iteration)
