"""The KV cache of one replica, as its scheduler sees it: blocks to ask for, prefixes to hit."""

from __future__ import annotations

from collections import OrderedDict
from itertools import count, pairwise

from sim.kv.chain import Chain, ChainBook, Run
from sim.request import Request

__all__ = ["KvCache"]


class KvCache:
    """A pool of *num_blocks* blocks of *block_size* tokens.

    A running request holds ``ceil(computed_tokens / block_size)`` blocks, so no count is kept for it. With
    *prefix_caching*, full blocks of prompts are keyed by their content (with *cache_generated* those of answers, too):
    a keyed block that nobody uses stays until it is evicted, least recently freed first, of one request the later
    blocks first. Blocks that were never keyed are taken before any eviction.

    Source: block pool and block hashes of vLLM V1 (`vllm/v1/core/block_pool.py`, `kv_cache_manager.py`).
    """

    def __init__(
        self, num_blocks: int, block_size: int, *, prefix_caching: bool = False, cache_generated: bool = False
    ) -> None:
        self.num_blocks, self.block_size, self.prefix_caching = num_blocks, block_size, prefix_caching
        self._cache_generated = prefix_caching and cache_generated
        self._plain = num_blocks  # free blocks without a key
        self._idle = 0  # keyed blocks that nobody uses
        self._users: dict[int, int] = {}  # shared keyed blocks in use: key -> requests
        self._lru: OrderedDict[int | Run, int] = OrderedDict()  # idle keyed blocks by the count of frees before
        self._frees = count()
        self._writers: dict[str, Request] = {}  # output segment -> the running request that generates it
        self._chains: dict[Request, Chain] = {}
        self._book = ChainBook(block_size, generated=cache_generated)

    @property
    def free(self) -> int:
        """Blocks that can be had, evictable ones included."""
        return self._plain + self._idle

    @property
    def used(self) -> int:
        """Blocks that running requests hold."""
        return self.num_blocks - self.free

    def blocks(self, tokens: int) -> int:
        """Return the blocks that *tokens* tokens fill or touch."""
        return -(-tokens // self.block_size)

    def fits(self, request: Request) -> bool:
        """Tell whether the pool, if empty, could hold *request* to its last token."""
        return self.blocks(request.total_tokens) <= self.num_blocks

    def take(self, blocks: int) -> None:
        """Take *blocks* of the free blocks; the caller has checked `free`."""
        plain = min(blocks, self._plain)
        self._plain -= plain
        if blocks > plain:
            self._evict(blocks - plain)

    def grow(self, request: Request, tokens: int) -> bool:
        """Get the blocks for *tokens* more tokens of a running *request*; return False if there are too few."""
        wanted = self.blocks(request.computed_tokens + tokens) - self.blocks(request.computed_tokens)
        if wanted > self.free:
            return False
        self.take(wanted)
        return True

    def hits(self, request: Request) -> int:
        """Return the tokens of *request*'s prompt that the prefix cache holds; at least one is left to compute."""
        if not self.prefix_caching:
            return 0
        chain = self._chain(request)
        limit = (request.input_tokens - 1) // self.block_size
        found = 0
        for key in chain.shared[:limit]:
            if key not in self._users and key not in self._lru:
                return found * self.block_size
            found += 1
        return min(found + chain.own_hits(), limit) * self.block_size

    def writers(self, request: Request) -> list[Request]:
        """Return the running requests whose answers, keyed as they grow, are part of *request*'s prompt."""
        if not self._writers:
            return []
        return [self._writers[name] for name, _ in request.segments if name in self._writers]

    def lacks_for_good(self, request: Request) -> bool:
        """Tell whether *request*, which lacks blocks, cannot get them while those who run just decode.

        It can where an answer in its prompt is being written; or where the first of its idle hits are evicted before
        the later ones, which then are hits no more, and need not be spared for it.
        """
        if not self.prefix_caching:
            return True
        if self.writers(request):
            return False
        chain = self._chain(request)
        hits = [*chain.shared[: self.hits(request) // self.block_size], *chain.idle]
        freed = [self._lru[hit] for hit in hits if hit in self._lru]
        return all(later < sooner for sooner, later in pairwise(freed))

    def admit(self, request: Request, hit_tokens: int, tokens: int) -> bool:
        """Give *request* its *hit_tokens* and the blocks for *tokens* more; return False if there are too few."""
        hit = hit_tokens // self.block_size
        new = self.blocks(hit_tokens + tokens) - hit
        if new > self.free:
            return False
        if hit:
            chain = self._chain(request)
            shared = chain.shared[:hit]
            idle = sum(key not in self._users for key in shared) + hit - len(shared)
            if new > self.free - idle:
                return False
            self._reuse(chain, shared, hit - len(shared))
            self._idle -= idle
        request.computed_tokens = hit_tokens
        request.cached_tokens += hit_tokens
        if self._cache_generated and request.output_segment is not None:
            self._writers[request.output_segment] = request
        self.take(new)
        return True

    def publish(self, request: Request) -> None:
        """Key the blocks that *request* has filled: those of its prompt at the end of each iteration that computes any.

        Nobody misses the keys of an answer before it leaves or somebody among whose `hits` they may be is looked up.
        """
        if not self.prefix_caching:
            return
        chain = self._chain(request)
        known = request.computed_tokens
        if not self._cache_generated:
            known = min(known, request.input_tokens)
        filled = known // self.block_size
        for key in chain.shared[chain.keyed : filled]:
            if key not in self._users and key not in self._lru:  # else a duplicate, which stays without a key
                self._users[key] = 1
                chain.held.append(key)
        chain.key_own(max(chain.keyed, len(chain.shared)), filled)
        chain.keyed = max(chain.keyed, filled)

    def release(self, request: Request) -> None:
        """Free all blocks of *request*, which has finished or is preempted; its `computed_tokens` are up to date."""
        held = self.blocks(request.computed_tokens)
        if not self.prefix_caching:
            self._plain += held
            return
        self.publish(request)
        answer = request.output_segment
        if answer is not None and self._writers.get(answer) is request:
            del self._writers[answer]
        chain = self._chains[request]
        self._plain += held - len(chain.held)
        for run in chain.retire():
            self._plain -= run.count
            self._idle += run.count
            self._lru[run] = next(self._frees)
        for key in reversed(chain.held):
            self._leave(key)
        chain.held.clear()
        chain.keyed = 0

    def forget(self, request: Request) -> None:
        """Drop what is known of a *request* that never comes back; its keyed blocks stay until they are evicted."""
        self._chains.pop(request, None)

    def _chain(self, request: Request) -> Chain:
        chain = self._chains.get(request)
        if chain is None:
            chain = self._chains[request] = self._book.chain(request)
        return chain

    def _reuse(self, chain: Chain, shared: list[int], own: int) -> None:
        for key in shared:
            users = self._users.get(key, 0)
            if not users:
                del self._lru[key]
            self._users[key] = users + 1
        for run in chain.reuse_own(own):
            del self._lru[run]
        chain.held, chain.keyed = shared, len(shared) + own

    def _leave(self, key: int) -> None:
        if self._users[key] > 1:
            self._users[key] -= 1
            return
        del self._users[key]
        self._lru[key] = next(self._frees)
        self._idle += 1

    def _evict(self, blocks: int) -> None:
        self._idle -= blocks
        while blocks:
            oldest = next(iter(self._lru))
            if isinstance(oldest, Run) and oldest.count > blocks:
                oldest.count -= blocks
                return
            blocks -= oldest.count if isinstance(oldest, Run) else 1
            del self._lru[oldest]
            if isinstance(oldest, Run):
                oldest.count = 0
