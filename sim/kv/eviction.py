"""In which order the keyed blocks that nobody uses are evicted."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Generic, Literal, Protocol, TypeVar

from sim.request import Request

__all__ = ["Eviction", "Idle", "Ranked"]

Eviction = Literal["lru", "lfu", "slru", "priority"]
"""Least recently used first; least often used first; those used once first; those of the least urgent requests first.
Among equals all go by the latest use."""

K = TypeVar("K", bound=Hashable)


class Idle(Protocol[K]):
    """Idle blocks, each with the count of frees before it; iterated from the one that is evicted first.

    What ``[...]`` returns is less for what is evicted sooner.
    """

    def __contains__(self, key: object, /) -> bool: ...
    def __iter__(self) -> Iterator[K]: ...
    def __getitem__(self, key: K, /) -> Any: ...
    def __setitem__(self, key: K, frees: int, /) -> None: ...
    def __delitem__(self, key: K, /) -> None: ...

    def pop(self, key: K, default: Any, /) -> Any:
        """Take out a block that is used again, if it is idle."""


class Ranked(Generic[K]):
    """`Idle` blocks by a rank, and within it least recently used first; an `OrderedDict` does for `lru`.

    A block's rank comes from its uses so far: each time that a request left it is one. Those of a block that was
    evicted are forgotten, and what only one request can ever hit was used once. So the blocks of a prompt rank no lower
    than those after them, which are evicted first.

    Source: SGLang 0.5.10 `mem_cache/evict_policy.py` and `radix_cache.py` (`_inc_hit_count`), which ranks the leaves of
    its tree; there `slru` protects from two uses on, and higher priorities are more urgent.
    """

    def __init__(self, eviction: Eviction) -> None:
        self._eviction = eviction
        self._uses: dict[K, int] = {}  # how often, or for `priority` the value of the most urgent request
        self._of: dict[K, int] = {}
        self._by_rank: dict[int, OrderedDict[K, int]] = {}
        self._ranks: list[int] = []  # a heap of those that have blocks, and perhaps of some that have none any more

    def use(self, keys: Sequence[K], request: Request) -> None:
        """Note that *request* leaves the blocks with these *keys*, none of which is idle."""
        for key in keys:
            if self._eviction == "priority":
                self._uses[key] = min(self._uses.get(key, request.priority), request.priority)
            else:
                self._uses[key] = self._uses.get(key, 0) + 1

    def __contains__(self, key: object) -> bool:
        return key in self._of

    def __iter__(self) -> Iterator[K]:
        while self._ranks and not self._by_rank[self._ranks[0]]:
            del self._by_rank[heapq.heappop(self._ranks)]
        if self._ranks:
            yield from self._by_rank[self._ranks[0]]

    def __getitem__(self, key: K) -> tuple[int, int]:
        rank = self._of[key]
        return rank, self._by_rank[rank][key]

    def __setitem__(self, key: K, frees: int) -> None:
        self.pop(key, None)
        rank = self._of[key] = self._rank(key)
        if rank not in self._by_rank:
            self._by_rank[rank] = OrderedDict()
            heapq.heappush(self._ranks, rank)
        self._by_rank[rank][key] = frees

    def __delitem__(self, key: K) -> None:
        """Forget a block that is evicted, and its uses."""
        del self._by_rank[self._of.pop(key)][key]
        self._uses.pop(key, None)

    def pop(self, key: K, default: Any) -> Any:
        """Take out a block that is used again."""
        if key not in self._of:
            return default
        return self._by_rank[self._of.pop(key)].pop(key)

    def _rank(self, key: K) -> int:
        if self._eviction == "priority":
            return -self._uses.get(key, 0)
        uses = self._uses.get(key, 1)
        return uses if self._eviction == "lfu" else int(uses > 1)
