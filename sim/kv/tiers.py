"""A prefix cache that goes on in the memory of the host and on disk."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal, Self

from sim.kv.cache import KvCache
from sim.kv.tier import Tier
from sim.request import Request

__all__ = ["TieredKvCache", "Write"]

Write = Literal["write_through", "write_back"]
"""Whether a block is copied as soon as it is full, or when it is evicted."""


class TieredKvCache(KvCache):
    """A `KvCache` whose evicted blocks are found in *tiers*, the fastest first.

    A tier keeps what was used last, and passes on what it has no room for. A request that hits blocks there gets blocks
    of the pool for them, and the iteration that admits it waits until they are loaded. Copying down is free: engines do
    it beside the computation (vLLM `v1/kv_offload`, LMCache, SGLang HiCache). Blocks with tokens of one request alone,
    which only that one could hit, are not kept.
    """

    def keep_in(self, tiers: Sequence[Tier], write: Write) -> Self:
        """Return the cache, before anything is in it, with its *tiers*.

        They are no parameters beside those of `KvCache`: mypyc passes ``**options`` to no base class.
        """
        self._tiers, self._through = tiers, write == "write_through"
        self._kept: list[OrderedDict[int, None]] = [OrderedDict() for _ in tiers]
        return self

    def lacks_for_good(self, request: Request) -> bool:
        """Tell whether *request* cannot get its blocks while those who run just decode; unknown if it hits any."""
        return super().lacks_for_good(request) and not self.hits(request)

    def _has(self, key: int) -> bool:
        return super()._has(key) or any(key in kept for kept in self._kept)

    def _load(self, key: int) -> None:
        for tier, kept in zip(self._tiers, self._kept, strict=True):
            if key in kept:
                kept.move_to_end(key)
                self.load_s += tier.block_s
                return

    def _keyed(self, key: int) -> None:
        if self._through:
            self._keep(key)

    def _evicted(self, key: int) -> None:
        if not self._through:
            self._keep(key)

    def _keep(self, key: int) -> None:
        """Keep *key* in the first tier, as used last; what a tier has no room for goes to the next."""
        for kept in self._kept:
            kept.pop(key, None)
        passed_on: int | None = key
        for tier, kept in zip(self._tiers, self._kept, strict=True):
            if passed_on is None:
                return
            kept[passed_on] = None
            passed_on = kept.popitem(last=False)[0] if len(kept) > tier.blocks else None
