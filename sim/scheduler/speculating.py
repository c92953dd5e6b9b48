"""Running requests whose decodes emit as many tokens in an iteration as a draft has accepted ones, and one more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sim.kv import Pages
from sim.request import Request
from sim.scheduler.tabled import Tabled
from sim.scheduler.timetable import Timetable

__all__ = ["Acceptances", "Ahead", "Speculating"]

Ints = NDArray[np.int64]

_LONGEST = 512
"""Iterations of a stride at most: each has its own cost, computed before it is known where the stride ends."""


class Acceptances(Protocol):
    """What is accepted of drafts."""

    @property
    def tokens_each(self) -> int:
        """Tokens that one verification computes for a sequence, and needs room for."""

    @property
    def computed_each(self) -> float:
        """The same on average."""

    def emitted(self, index: int, verifications: int) -> Ints:
        """Return the tokens that each of the first *verifications* of request *index* emits."""


class Ahead(NamedTuple):
    """The next iterations of the decodes, a cell each; *windows* has a row for each attention window.

    Attributes
    ----------
    context_tokens
        Sum over the decodes of their tokens after the iteration, before rejected ones are dropped.
    windows
        The same capped at each window.
    emitted, new_blocks
        Tokens emitted and KV blocks taken in it, less those freed at its end.
    """

    context_tokens: Ints
    windows: tuple[Ints, ...]
    emitted: Ints
    new_blocks: Ints


class Speculating(Tabled):
    """As `Tabled`, with the tokens of each verification drawn in advance.

    What an iteration computes and takes is then known for all iterations to come: each request adds its own to
    timetables when it begins to decode, and takes back what is left when it stops.

    A decode holds blocks for its draft, too, and keeps them when tokens of it are rejected, as in vLLM.
    """

    def __init__(self, pages: Pages, windows: tuple[int, ...], acceptances: Acceptances) -> None:
        super().__init__(pages)
        self.tokens_each, self.computed_each = acceptances.tokens_each, acceptances.computed_each
        self._acceptances, self._window_sizes = acceptances, windows
        self._context = 0  # computed tokens of the decodes
        self._capped = [0 for _ in windows]  # as they will be after the next iteration
        self._growth = Timetable()
        self._capped_growth = [Timetable() for _ in windows]

    def begin_decoding(self, request: Request) -> None:
        """Move *request* to the decodes, whose verifications go on where they stopped."""
        path = self._list(request, self._drawn(request))
        self._context += int(path.computed[0])
        self._growth.add(np.diff(path.computed))
        for place, (now, growth) in enumerate(self._capped_by_window(path.computed)):
            self._capped[place] += now
            self._capped_growth[place].add(growth)
        self._join_decodes(request, self.iteration + len(path.taken))

    def _update(self, request: Request) -> None:
        """Bring the token counts of *request*, which decodes, up to date."""
        path = self._paths[request]
        done = self.iteration - path.start
        if not done:
            return
        request.computed_tokens = int(path.computed[done])
        request.emitted_tokens = request.computed_tokens - request.input_tokens + 1
        request.rejected_tokens = int(path.computed[done - 1]) + self.tokens_each - request.computed_tokens

    def computed_tokens(self, request: Request) -> int:
        """Return the tokens that *request*, which decodes, has computed."""
        path = self._paths[request]
        return int(path.computed[self.iteration - path.start])

    def context_tokens(self) -> int:
        """Return the sum over the decodes of their tokens after the next iteration, rejected ones included."""
        return self._context + self.decoding * self.tokens_each

    def window_tokens(self) -> tuple[int, ...]:
        """Return `context_tokens` capped at each window."""
        return tuple(self._capped)

    def next_change(self) -> float:
        """Return for how many iterations nobody finishes before the last, and it is worth listing them."""
        return min(self.next_finish(), _LONGEST)

    def ahead(self, iterations: int) -> Ahead:
        """Return what the next *iterations* compute, emit and take."""
        emitted = self._growth.ahead(iterations).copy()
        growths = [growth.ahead(iterations) for growth in self._capped_growth]
        return Ahead(
            self.context_tokens() + np.cumsum(emitted) - emitted,
            tuple(capped + np.cumsum(growth) - growth for capped, growth in zip(self._capped, growths, strict=True)),
            emitted,
            self._taken.ahead(iterations) - self._freed.ahead(iterations),
        )

    def emits(self, iterations: int) -> int:
        """Return the tokens that the decodes emit in the next *iterations*."""
        return int(self._growth.ahead(iterations).sum())

    def advance(self, iterations: int) -> list[Request]:
        """Let every decode verify *iterations* drafts; return those that have finished, in admission order."""
        self._context += self._growth.advance(iterations)
        growths = [growth.advance(iterations) for growth in self._capped_growth]
        self._capped = [capped + growth for capped, growth in zip(self._capped, growths, strict=True)]
        return super().advance(iterations)

    def _drawn(self, request: Request) -> Ints:
        """Return the computed tokens of *request* now and after each verification; the last cuts what it emits."""
        left = request.output_tokens - request.emitted_tokens
        drawn = self._acceptances.emitted(request.index, request.verifications + left)[request.verifications :]
        emitted = np.minimum(np.cumsum(drawn), left)
        emitted = emitted[: int(np.searchsorted(emitted, left)) + 1]
        return request.computed_tokens + np.concatenate((np.zeros(1, dtype=np.int64), emitted))

    def _capped_by_window(self, computed: Ints) -> Iterator[tuple[int, Ints]]:
        """Yield for each window the capped context of the first verification, and its growth to each next one."""
        for window in self._window_sizes:
            capped = np.minimum(computed + self.tokens_each, window)
            yield int(capped[0]), np.diff(capped)

    def _stop_decoding(self, request: Request) -> None:
        self._leave_decodes(request)
        path, done = self._unlist(request)
        self._context -= int(path.computed[done])
        self._growth.subtract(np.diff(path.computed[done:]))
        for place, (now, growth) in enumerate(self._capped_by_window(path.computed[done:])):
            self._capped[place] -= now
            self._capped_growth[place].subtract(growth)
        request.verifications += done
