"""What the outstanding prompts of each replica amount to, if what they share is counted once."""

from __future__ import annotations

import numpy as np

from sim.request import Request
from sim.router.column import Floats
from sim.router.fleet import Watcher
from sim.router.prefixes import Piece

__all__ = ["ActivePrompts"]


class ActivePrompts(Watcher):
    """The different pieces of the prompts that were sent to each replica and are not answered yet.

    Attributes
    ----------
    tokens
        Their tokens by the number of the replica [tokens]; valid until a replica joins.
    """

    def __init__(self) -> None:
        self.tokens: Floats = np.zeros(8)
        self._users: dict[int, dict[int, int]] = {}  # node -> replica -> how many prompts have it there
        self._sent: dict[Request, tuple[int, list[Piece]]] = {}

    def shared(self, path: list[Piece]) -> dict[int, int]:
        """Return how many tokens of *path* are active at each of the replicas where any are."""
        found: dict[int, int] = {}
        for node, tokens, _ in path:
            for replica in self._users.get(node, ()):
                found[replica] = found.get(replica, 0) + tokens
        return found

    def add(self, request: Request, path: list[Piece], replica: int) -> None:
        """Note that *request* was sent to *replica*."""
        self._sent[request] = replica, path
        for node, tokens, _ in path:
            users = self._users.setdefault(node, {})
            users[replica] = users.get(replica, 0) + 1
            self.tokens[replica] += tokens * (users[replica] == 1)

    def ended(self, request: Request) -> None:
        """Forget *request*."""
        replica, path = self._sent.pop(request, (-1, []))
        for node, tokens, _ in path:
            users = self._users[node]
            users[replica] -= 1
            if not users[replica]:
                del users[replica]
                self.tokens[replica] -= tokens
            if not users:
                del self._users[node]

    def joined(self, index: int) -> None:
        """Make room for a new replica."""
        while index >= len(self.tokens):
            self.tokens = np.concatenate([self.tokens, np.zeros(len(self.tokens))])

    def left(self, index: int) -> None:
        """Forget what was sent to a replica."""
        for request in [request for request, (replica, _) in self._sent.items() if replica == index]:
            self.ended(request)
