"""The blocks of one replica's KV cache: taken, grown, freed, and moved to the host's memory and back."""

from __future__ import annotations

from bisect import bisect_right

from sim.kv.pages import Pages
from sim.kv.tier import Tier
from sim.request import Request

__all__ = ["BlockPool"]


class BlockPool:
    """A pool of *num_blocks* blocks of *block_size* tokens.

    A running request holds ``ceil(computed_tokens / block_size)`` blocks, so no count is kept for it; with
    *draft_tokens* also those for the rejected ones of its last draft. Where layers have block tables of their own,
    *pages* says what a sequence holds. With *swap*, requests that are preempted may move their blocks to the host's
    memory and back.

    Attributes
    ----------
    free
        Blocks that can be had.
    load_s
        What is hit elsewhere or is swapped takes so long to move, until somebody takes note of it [s].
    """

    def __init__(
        self, num_blocks: int, block_size: int, draft_tokens: int, pages: Pages | None, swap: Tier | None
    ) -> None:
        self.num_blocks, self.block_size = num_blocks, block_size
        self.draft_tokens, self._pages = draft_tokens, pages or Pages(block_size)
        self.free = num_blocks
        self._swap = swap or Tier(0, 0.0)
        self._swap_free, self.load_s = self._swap.blocks, 0.0

    @property
    def used(self) -> int:
        """Blocks that running requests hold."""
        return self.num_blocks - self.free

    @property
    def room_tokens(self) -> int:
        """Tokens that all blocks hold; where sequences have several tables, in those that keep every token."""
        return self.num_blocks // max(self._pages.full, 1) * self.block_size

    @property
    def leaves_behind(self) -> bool:
        """Whether a sequence frees blocks while it grows."""
        return bool(self._pages.windows)

    def blocks(self, tokens: int) -> int:
        """Return the blocks that *tokens* tokens fill or touch."""
        return -(-tokens // self.block_size)

    def holds(self, tokens: int) -> bool:
        """Tell whether the pool, if empty, could hold any sequence of up to so many *tokens*."""
        return self._pages.most(tokens + self.draft_tokens) <= self.num_blocks

    def fits(self, request: Request) -> bool:
        """Tell whether the pool, if empty, could hold *request* to its last token."""
        return self.most_blocks(request) <= self.num_blocks

    def most_blocks(self, request: Request) -> int:
        """Return the blocks that *request* may come to hold; where its KV is sent here, all of that comes at once."""
        most = self._pages.most(request.total_tokens + self.draft_tokens)
        return max(most, self._pages.held(0, request.remote_tokens)) if request.remote_tokens else most

    def room(self, request: Request) -> int:
        """Return how many more tokens a running *request* could get."""
        blocks, most_tokens = self._held(request) + self.free, self.num_blocks * self.block_size
        return bisect_right(range(most_tokens), blocks, key=lambda n: self._pages.held(request.computed_tokens, n)) - 1

    def take(self, blocks: int) -> None:
        """Take *blocks* of the free blocks; the caller has checked `free`."""
        self.free -= blocks

    def move(self, most: int, net: int) -> None:
        """Take *most* blocks, if not all at once, and free some, so that *net* are taken in the end."""
        self.take(most)
        if most != net:
            self.free += most - net

    def grow(self, request: Request, tokens: int) -> bool:
        """Get the blocks for *tokens* more tokens of a running *request*; return False if there are too few."""
        wanted = self._pages.held(request.computed_tokens, tokens) - self._held(request)
        if wanted > self.free:
            return False
        self.take(wanted)
        return True

    def give_back(self, request: Request, tokens: int) -> None:
        """Free the blocks that *request* got for *tokens* more tokens, which it will not compute."""
        if tokens:
            self.free += self._pages.held(request.computed_tokens, tokens) - self._held(request)

    def pass_by(self, request: Request, tokens: int) -> None:
        """Count *tokens* more of *request* as computed, and free what its windows have left behind."""
        before = request.computed_tokens
        request.computed_tokens += tokens
        if self._pages.windows:
            self.free += self._pages.left_behind(before, request.computed_tokens)

    def take_load_s(self) -> float:
        """Return how long what was hit elsewhere or is swapped takes to move, and forget it [s]."""
        load_s, self.load_s = self.load_s, 0.0
        return load_s

    def swap_out(self, request: Request) -> bool:
        """Move the blocks of *request*, which is preempted, to the host's memory; return False if they do not fit."""
        held = self._held(request)
        if held > self._swap_free:
            return False
        self._swap_free -= held
        self.load_s += held * self._swap.block_s
        request.swapped_blocks = held
        self.release(request)
        return True

    def swap_in(self, request: Request, tokens: int, *, spare: int = 0) -> bool:
        """Bring *request* back with room for *tokens* more; return False if fewer than *spare* blocks were left."""
        wanted = self._pages.held(request.computed_tokens, tokens)
        if wanted > self.free - spare:
            return False
        self.take(wanted)
        self.load_s += request.swapped_blocks * self._swap.block_s
        self._forget_swapped(request)
        return True

    def _forget_swapped(self, request: Request) -> None:
        self._swap_free += request.swapped_blocks
        request.swapped_blocks = 0

    def release(self, request: Request) -> None:
        """Free all blocks of *request*, which has finished or is preempted; its `computed_tokens` are up to date."""
        self.free += self._held(request)
        request.rejected_tokens = 0

    def retire(self, request: Request) -> None:
        """Free all blocks of *request*, which never comes back."""
        self.release(request)
        self._forget_swapped(request)

    def _held(self, request: Request) -> int:
        return self._pages.held(request.computed_tokens, request.rejected_tokens)
