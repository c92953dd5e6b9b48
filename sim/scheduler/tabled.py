"""Running requests whose blocks are listed by the iterations to come, since no pattern says how many they will be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.kv import Pages
from sim.request import Request
from sim.scheduler.running import Running
from sim.scheduler.timetable import Timetable

__all__ = ["Path", "Tabled"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Path:
    """One request's decodes from iteration *start* on: its computed tokens before the first of them and after each.

    *taken* and *freed* are its blocks by iteration: taken at the start of one, freed at the end.
    """

    start: int
    computed: Ints
    taken: Ints
    freed: Ints


class Tabled(Running):
    """As `Running`, for sequences that free blocks while they decode.

    Each request adds the blocks that it will take and free to timetables when it begins to decode, and takes back what
    is left of that when it stops.
    """

    def __init__(self, pages: Pages, windows: tuple[int, ...] = ()) -> None:
        super().__init__(pages.block_size, windows)
        self._pages = pages
        self._taken, self._freed = Timetable(), Timetable()
        self._paths: dict[Request, Path] = {}

    def begin_decoding(self, request: Request) -> None:
        """Move *request* to the decodes, and list the blocks of all its iterations."""
        super().begin_decoding(request)
        left = request.output_tokens - request.emitted_tokens
        self._list(request, request.computed_tokens + np.arange(left + 1))

    def blocks_now(self) -> int:
        """Return the KV blocks that the decodes take in the next iteration."""
        return int(self._taken.ahead(1)[0])

    def new_blocks(self, iterations: int, *, after: int = 0) -> int:
        """Return the KV blocks that the decodes take in *iterations* iterations, which follow the next *after* ones."""
        return int(self._taken.ahead(iterations, after=after).sum())

    def blocks_during(self, iterations: int) -> int:
        """Return how many blocks more are in use in the last of *iterations*, whose first has its own."""
        return int(self._lacking(iterations)[-1])

    def blocks_moved(self, iterations: int) -> tuple[int, int]:
        """Return the most blocks that *iterations*, whose first has its own, lack at a time, and in the end."""
        lacking, freed = self._lacking(iterations), self._freed.ahead(iterations)
        return max(int(lacking.max()), 0), int(lacking[-1] - freed[-1])

    def within(self, iterations: int, free: int, *, till_more: bool) -> int:
        """Return for how many of *iterations*, whose first has its own, *free* further blocks suffice.

        With *till_more*, stop before one that begins with more free blocks than the first.
        """
        lacking = self._lacking(iterations)
        ends = lacking > free
        if till_more:
            ends |= lacking < 0
        return int(np.argmax(ends)) if ends.any() else iterations

    def advance(self, iterations: int) -> list[Request]:
        """Let every decode compute *iterations* times; return those that have finished, in admission order."""
        self._taken.advance(iterations)
        self._freed.advance(iterations)
        return super().advance(iterations)

    def _lacking(self, iterations: int) -> Ints:
        """Return for each of *iterations* what it and those before take beyond the first, less what they freed."""
        moved = self._taken.ahead(iterations).copy()
        moved[0] = 0
        moved[1:] -= self._freed.ahead(iterations)[:-1]
        return np.cumsum(moved)

    def _list(self, request: Request, computed: Ints) -> Path:
        """Add the blocks of *request*, whose tokens are *computed* after each of its decodes, to the timetables."""
        touched = computed + self.tokens_each
        held = np.concatenate(([computed[0] + request.rejected_tokens], touched[:-2]))
        taken = self._pages.taken(held, touched[:-1])
        freed = self._pages.left_behind(computed[:-1], computed[1:])
        path = self._paths[request] = Path(self.iteration, computed, taken, freed)
        self._taken.add(taken)
        self._freed.add(freed)
        return path

    def _unlist(self, request: Request) -> tuple[Path, int]:
        """Take back the rest of the blocks of *request*; return its path and how far it came."""
        path = self._paths.pop(request)
        done = self.iteration - path.start
        self._taken.subtract(path.taken[done:])
        self._freed.subtract(path.freed[done:])
        return path, done

    def _stop_decoding(self, request: Request) -> None:
        super()._stop_decoding(request)
        self._unlist(request)

    def _most_blocks(self, request: Request) -> int:
        return self._pages.most(request.total_tokens + self.tokens_each - 1)
