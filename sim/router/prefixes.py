"""Which prefixes of prompts each replica holds, as far as a router can tell from what it sent there."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from sim.request import Request
from sim.router.fleet import Watcher

__all__ = ["Piece", "PrefixIndex"]

_ROOT = 0


class Piece(NamedTuple):
    """A segment of a prompt in the index: its node, its length, and the tokens before it [tokens]."""

    node: int
    tokens: int
    start: int


class PrefixIndex(Watcher):
    """A trie over the named segments of prompts; at each node the replicas that were sent it, and how much of it.

    A replica's nodes are forgotten least recently sent first, of one prompt the last segment first, as soon as it holds
    more than *capacity* tells for it [tokens]. The tokens of a prompt after its named segments count, and match
    nobody's.
    """

    def __init__(self, capacity: Callable[[int], float]) -> None:
        self._capacity = capacity
        self._nodes: dict[tuple[int, int, str], int] = {}  # node and length of the segment before, name -> node
        self._holders: dict[int, dict[int, int]] = {}  # node -> replica -> tokens
        self._held: dict[int, OrderedDict[int, int]] = {}  # replica -> node -> tokens, the next to be forgotten first
        self._sizes: dict[int, int] = {}

    def path(self, request: Request) -> list[Piece]:
        """Return the pieces of *request*'s prompt."""
        pieces: list[Piece] = []
        node, length, start = _ROOT, 0, 0
        for name, tokens in request.segments:
            node = self._nodes.setdefault((node, length, name), len(self._nodes) + 1)
            pieces.append(Piece(node, tokens, start))
            length, start = tokens, start + tokens
        if start < request.input_tokens:
            pieces.append(Piece(-1 - request.index, request.input_tokens - start, start))
        return pieces

    def longest(self, path: list[Piece]) -> tuple[int, int]:
        """Return the most tokens of *path* that a replica holds, and which; of several the first to which it was sent.

        Nobody is -1, with 0 tokens.
        """
        found = (0, -1)
        for node, tokens, start in path:
            holders = self._holders.get(node)
            if not holders:
                break
            whole = next((replica for replica, held in holders.items() if held >= tokens), -1)
            if whole < 0:
                replica = max(holders, key=lambda holder: holders[holder])
                return start + holders[replica], replica
            found = (start + tokens, whole)
        return found

    def hits(self, path: list[Piece]) -> dict[int, int]:
        """Return how many tokens of *path* each of the replicas holds that hold any."""
        found: dict[int, int] = {}
        for node, tokens, start in reversed(path):
            for replica, held in self._holders.get(node, {}).items():
                if replica not in found:
                    found[replica] = start + min(held, tokens)
        return found

    def insert(self, path: list[Piece], replica: int) -> None:
        """Note that a prompt was sent to *replica*."""
        held = self._held[replica]
        for node, tokens, _ in reversed(path):  # so that of one prompt the first piece is the last to be forgotten
            before = held.pop(node, 0)
            held[node] = max(before, tokens)
            self._sizes[replica] += held[node] - before
            self._holders.setdefault(node, {})[replica] = held[node]
        while self._sizes[replica] > self._capacity(replica):
            self._forget(replica, *held.popitem(last=False))

    def joined(self, index: int) -> None:
        """Count a replica that holds nothing."""
        self._held[index], self._sizes[index] = OrderedDict(), 0

    def left(self, index: int) -> None:
        """Forget what a replica held."""
        for node, tokens in self._held.pop(index).items():
            self._forget(index, node, tokens)
        del self._sizes[index]

    def _forget(self, replica: int, node: int, tokens: int) -> None:
        self._sizes[replica] -= tokens
        holders = self._holders[node]
        del holders[replica]
        if not holders:
            del self._holders[node]
