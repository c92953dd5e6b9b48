"""How many blocks of the pool a sequence holds when groups of layers have block tables of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pages", "WindowTables"]

Ints = NDArray[np.int64]
N = TypeVar("N", int, NDArray[np.int64])


@dataclass(frozen=True, slots=True)
class WindowTables:
    """*tables* equal block tables of layers that look back on *tokens* tokens only, in blocks of *block_size* tokens.

    What lies before the window of the next token is freed. A *chunked* window begins with a multiple of its length.
    """

    tables: int
    tokens: int
    block_size: int
    chunked: bool = False

    def passed(self, computed: N) -> N:
        """Return the blocks of one table that the next token after *computed* ones does not look back on."""
        if self.chunked:
            return computed // self.tokens * self.tokens // self.block_size
        before = computed - self.tokens + 1
        return before * (before > 0) // self.block_size

    def most(self, tokens: int, in_flight: float) -> int:
        """Return the blocks of one table that a sequence of *tokens* holds at most, *in_flight* computed in one go."""
        if self.tokens - 1 + in_flight >= tokens:
            return -(-tokens // self.block_size)
        return math.ceil((self.tokens - 1 + in_flight) / self.block_size) + 1


@dataclass(frozen=True, slots=True)
class Pages:
    """The block tables of one sequence; all draw on one pool.

    Source: vLLM `v1/core/kv_cache_coordinator.py` and `single_type_kv_cache_manager.py` (`remove_skipped_blocks`).
    There the blocks before a window are freed when the sequence is scheduled next, here as soon as they are passed.

    Attributes
    ----------
    block_size
        Tokens of a block of the *full* tables, which keep all tokens.
    windows
        Tables that keep a window.
    states
        Blocks with a constant state of the sequence, such as that of a Mamba layer.
    in_flight_tokens
        Most tokens of a sequence that an iteration computes.
    """

    block_size: int
    full: int = 1
    windows: tuple[WindowTables, ...] = ()
    states: int = 0
    in_flight_tokens: float = math.inf

    @property
    def plain(self) -> bool:
        """Whether a sequence has one table that keeps everything."""
        return self.full == 1 and not self.windows and not self.states

    def held(self, computed: int, ahead: int = 0) -> int:
        """Return the blocks of a sequence of *computed* tokens that has room for *ahead* more."""
        tokens = computed + ahead
        blocks = self.full * -(-tokens // self.block_size)
        if not (self.windows or self.states):
            return blocks
        blocks += self.states * (tokens > 0)
        return blocks + sum(
            each.tables * (-(-tokens // each.block_size) - each.passed(computed)) for each in self.windows
        )

    def most(self, tokens: int) -> int:
        """Return the blocks that a sequence of *tokens* holds at most."""
        blocks = self.full * -(-tokens // self.block_size) + self.states
        for each in self.windows:
            blocks += each.tables * each.most(tokens, self.in_flight_tokens)
        return blocks

    def left_behind(self, before: N, after: N) -> N:
        """Return the blocks that windows free when a sequence of *before* computed tokens has *after*."""
        freed = 0 * after
        for each in self.windows:
            freed += each.tables * (each.passed(after) - each.passed(before))
        return freed

    def taken(self, before: Ints, after: Ints) -> Ints:
        """Return the blocks that a sequence with room for *before* tokens takes to have room for *after*."""
        taken: Ints = self.full * (-(-after // self.block_size) + (-before // self.block_size))
        for each in self.windows:
            taken += each.tables * (-(-after // each.block_size) + (-before // each.block_size))
        return taken
