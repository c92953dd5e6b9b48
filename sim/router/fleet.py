"""The replicas behind a router, which come and go."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

import numpy as np

from sim.request import Request
from sim.router.base import Load

__all__ = ["Fleet", "Watcher"]


class Watcher:
    """Is told what happens to a fleet; a subclass overrides what it cares for."""

    def joined(self, index: int) -> None:
        """Know that replica *index* is ready, with an empty cache."""

    def left(self, index: int) -> None:
        """Know that replica *index* gets no more requests."""

    def changed(self, index: int) -> None:
        """Know that the load of replica *index* may have changed, other than by what its iterations add."""

    def ended(self, request: Request) -> None:
        """Know that *request* was answered, refused or given up."""


class Fleet:
    """The replicas that are ready to serve, and who wants to know about them.

    Parameters
    ----------
    draws
        Random numbers of the router, a stream of their own.

    Attributes
    ----------
    ready
        Numbers of the replicas that may be chosen, rising.
    loads
        These replicas by number.
    watches_engines
        Whether somebody watches what only engines know, such as who waits: they tell at every iteration then.
    reports
        What is to be called at every multiple of an interval [s], while requests are served.
    uniforms
        Random numbers from 0 to below 1, for ever.
    """

    def __init__(self, draws: np.random.Generator) -> None:
        self.ready: list[int] = []
        self.loads: dict[int, Load] = {}
        self.watches_engines = False
        self.reports: list[tuple[float, Callable[[], None]]] = []
        self.uniforms = _uniforms(draws)
        self._watchers: list[Watcher] = []

    def watch(self, watcher: Watcher, *, engines: bool = False) -> None:
        """Tell *watcher* of the future; with *engines* also of what happens in them."""
        self._watchers.append(watcher)
        self.watches_engines |= engines

    def join(self, load: Load) -> None:
        """Let a replica be chosen from now on."""
        insort(self.ready, load.index)
        self.loads[load.index] = load
        for watcher in self._watchers:
            watcher.joined(load.index)

    def leave(self, index: int) -> None:
        """Let replica *index* be chosen no more: it drains, fails or is removed."""
        del self.ready[bisect_left(self.ready, index)]
        del self.loads[index]
        for watcher in self._watchers:
            watcher.left(index)

    def changed(self, index: int) -> None:
        """Tell that the load of replica *index* has changed; of one that has left nobody wants to know."""
        if index in self.loads:
            for watcher in self._watchers:
                watcher.changed(index)

    def ended(self, request: Request) -> None:
        """Tell that *request* is outstanding no more."""
        if request.replica in self.loads:
            for watcher in self._watchers:
                watcher.changed(request.replica)
        for watcher in self._watchers:
            watcher.ended(request)

    def draw(self) -> int:
        """Return any ready replica, all with the same probability."""
        return self.ready[int(next(self.uniforms) * len(self.ready))]


def _uniforms(draws: np.random.Generator) -> Iterator[float]:
    while True:  # in blocks, since single draws cost as much as the rest of a choice
        yield from draws.random(256).tolist()
