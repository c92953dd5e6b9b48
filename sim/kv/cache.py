"""The KV cache of one replica, as its scheduler sees it: blocks to ask for, prefixes to hit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count, pairwise

from sim.kv.chain import Chain, ChainBook, Run
from sim.kv.eviction import Eviction, Idle, Ranked
from sim.kv.pages import Pages
from sim.kv.pool import BlockPool
from sim.kv.tier import Tier
from sim.request import Request

__all__ = ["KvCache"]


class KvCache(BlockPool):
    """A `BlockPool` whose blocks may be found again.

    With *prefix_caching*, full blocks of prompts are keyed by their content (with *cache_generated* those of answers,
    too): a keyed block that nobody uses stays until it is evicted, least recently freed first unless *eviction* says
    otherwise, of one request the later blocks first. Blocks that were never keyed are taken before any eviction.

    Where layers have block tables of their own, the blocks of all tables that keep every token are keyed together;
    windows and states are each request's own, also where it hits a prefix.

    With *partial_blocks*, the last, partly filled block of a prompt is kept too when its request leaves. Whoever begins
    with the whole of that prompt copies it.

    Source: block pool and block hashes of vLLM V1 (`vllm/v1/core/block_pool.py`, `kv_cache_manager.py`).

    Attributes
    ----------
    settle
        Brings the `computed_tokens` of a running request up to date; whoever lets requests decode in strides sets it.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        *,
        prefix_caching: bool = False,
        cache_generated: bool = False,
        partial_blocks: bool = False,
        draft_tokens: int = 0,
        pages: Pages | None = None,
        swap: Tier | None = None,
        eviction: Eviction = "lru",
    ) -> None:
        super().__init__(num_blocks, block_size, draft_tokens, pages, swap)
        self.prefix_caching, self._cache_generated = prefix_caching, prefix_caching and cache_generated
        self._idle = 0  # keyed blocks of each full table that nobody uses: free, but taken last
        self._users: dict[int, int] = {}  # shared keyed blocks in use: key -> requests
        self._ranked = None if eviction == "lru" else Ranked[int | Run](eviction)
        self._lru: Idle[int | Run] = self._ranked or OrderedDict()  # idle keyed blocks by the count of frees before
        self._frees = count()
        self._writers: dict[str, Request] = {}  # output segment -> the running request that generates it
        self._expected: set[Request] = set()  # hold blocks whose content is on its way
        self._chains: dict[Request, Chain] = {}
        self._book = ChainBook(block_size, generated=cache_generated, partial=partial_blocks)
        self.settle: Callable[[Request], None] = lambda request: None

    def take(self, blocks: int) -> None:
        """Take *blocks* of the free blocks, and evict idle ones where there are no others."""
        self.free -= blocks
        full = self._pages.full
        keyed = self._idle * full
        if keyed > self.free:
            self._evict(-((self.free - keyed) // full))

    def hits(self, request: Request) -> int:
        """Return the tokens of *request*'s prompt that the prefix cache holds; at least one is left to compute."""
        if not self.prefix_caching:
            return 0
        if self._writers:
            self._publish_writers(request)
        if self._unshared(request):
            return 0
        chain = self._chain(request)
        if not (chain.shared or chain.idle or chain.tail):
            return 0
        limit = (request.input_tokens - 1) // self.block_size
        found = 0
        for key in chain.shared[:limit]:
            if not self._has(key):
                return found * self.block_size
            found += 1
        if chain.tail in self._lru or chain.tail in self._users:
            return request.input_tokens - 1
        return min(found + chain.own_hits(), limit) * self.block_size

    def lacks_for_good(self, request: Request) -> bool:
        """Tell whether *request*, which lacks blocks, cannot get them while those who run just decode.

        It can where an answer in its prompt is being written; or where the first of its idle hits are evicted before
        the later ones, which then are hits no more, and need not be spared for it.
        """
        if not self.prefix_caching:
            return True
        chain = self._chain(request)
        if self._writers_for(request) or chain.tail in self._lru:
            return False
        hits: list[int | Run] = [*chain.shared[: self.hits(request) // self.block_size], *chain.idle]
        freed = [self._lru[hit] for hit in hits if hit in self._lru]
        return all(later < sooner for sooner, later in pairwise(freed))

    def admit(self, request: Request, hit_tokens: int, tokens: int, *, room: int = 0, spare: int = 0) -> bool:
        """Give *request* its *hit_tokens* and the blocks for *tokens* more; return False if there are too few.

        So it does if there would not be enough for *room* tokens instead, or if fewer than *spare* blocks were left.
        """
        hit, pages = hit_tokens // self.block_size, self._pages
        chain = self._chain(request) if hit else None
        far = [key for key in chain.shared[:hit] if key not in self._users and key not in self._lru] if chain else []
        near = hit - len(far)
        new = pages.held(hit_tokens, tokens) - near * pages.full
        free = self.free - spare
        if room > tokens:
            all_of_it = min(pages.held(hit_tokens, room), pages.most(hit_tokens + room)) - near * pages.full
            free -= max(all_of_it - new, 0)
        if new > free:
            return False
        if chain is not None:
            shared = chain.shared[:hit]
            idle = sum(key in self._lru for key in shared) + hit - len(shared)
            if new > free - idle * pages.full:
                return False
            self._reuse(chain, shared, hit - len(shared))
            self._idle -= idle
            self.free -= idle * pages.full
            for key in far:
                self._load(key)
            if hit_tokens % self.block_size:
                self._touch_tail(chain)
        request.computed_tokens = hit_tokens
        request.cached_tokens += hit_tokens
        if self._cache_generated and request.output_segment is not None:
            self._writers[request.output_segment] = request
        self.take(new)
        return True

    def expect(self, request: Request) -> None:
        """Key no block of *request*, whose content comes from another replica, before it is published."""
        self._expected.add(request)

    def computed(self, request: Request, tokens: int) -> None:
        """Count *tokens* more of *request* as computed and publish them; at the end of an iteration that did so."""
        self.pass_by(request, tokens)
        self.publish(request)

    def publish(self, request: Request) -> None:
        """Key the blocks that *request* has filled.

        The keys of an answer can wait until it leaves, or somebody comes to whom it is a part of the prompt.
        """
        self._expected.discard(request)
        if self.prefix_caching:
            if self._writers:
                self._publish_writers(request)
            if not self._unshared(request):
                self._key(request)

    def swap_in(self, request: Request, tokens: int, *, spare: int = 0) -> bool:
        """Bring *request* back, as a `BlockPool` does, and key its blocks."""
        back = super().swap_in(request, tokens, spare=spare)
        if back and self.prefix_caching:
            self._key(request)
        return back

    def release(self, request: Request) -> None:
        """Free all blocks of *request*, which has finished or is preempted; those with keys stay until evicted."""
        if not self.prefix_caching:
            super().release(request)
            self._expected.discard(request)
            return
        held, request.rejected_tokens = self._held(request), 0
        self._key(request)
        self._stop_writing(request)
        chain = self._chain(request)
        if request in self._expected:
            self._expected.remove(request)
        else:
            self._keep_tail(request, chain)
        self.free += held - len(chain.held) * self._pages.full
        for run in chain.retire():
            self._idle += run.count
            self._lru[run] = next(self._frees)
        if self._ranked is not None:
            self._ranked.use(chain.held, request)
        for key in reversed(chain.held):
            self._leave(key)
        chain.held.clear()
        chain.keyed = 0

    def retire(self, request: Request) -> None:
        """Free all blocks of *request*, which never comes back; those with keys stay until evicted."""
        if not (self.prefix_caching and self._unshared(request)) or request in self._expected:
            self.release(request)
            self.forget(request)
            return
        super().release(request)
        self._stop_writing(request)
        filled = self._filled(request)
        if filled:
            self._idle += filled
            self._lru[Run(0, filled)] = next(self._frees)

    def forget(self, request: Request) -> None:
        """Drop what is known of a *request* that never comes back; its keyed blocks stay until they are evicted."""
        self._chains.pop(request, None)
        self._forget_swapped(request)

    def _unshared(self, request: Request) -> bool:
        """Tell whether nobody can hit a block of *request*: not even itself, which was never preempted."""
        return not request.segments and request not in self._chains

    def _filled(self, request: Request) -> int:
        """Return how many blocks of *request* are full of what is keyed."""
        known = request.computed_tokens
        if not self._cache_generated and known > request.input_tokens:
            known = request.input_tokens
        return known // self.block_size

    def _stop_writing(self, request: Request) -> None:
        answer = request.output_segment
        if answer is not None and self._writers.get(answer) is request:
            del self._writers[answer]

    def _chain(self, request: Request) -> Chain:
        chain = self._chains.get(request)
        if chain is None:
            chain = self._chains[request] = self._book.chain(request)
        return chain

    def _writers_for(self, request: Request) -> list[Request]:
        """Return the running requests whose answers are part of *request*'s prompt."""
        if not self._writers:
            return []
        return [self._writers[name] for name, _ in request.segments if name in self._writers]

    def _publish_writers(self, request: Request) -> None:
        # Exact but for one corner: if a prompt computed a block ahead of its writer, and that block was evicted after
        # the writer made its duplicate, the duplicate gets the key here.
        for writer in self._writers_for(request):
            self.settle(writer)
            self._key(writer)

    def _key(self, request: Request) -> None:
        if request in self._expected:
            return
        chain = self._chain(request)
        filled = self._filled(request)
        if filled <= chain.keyed:
            return
        for key in chain.shared[chain.keyed : filled]:
            if key not in self._users and key not in self._lru:  # else a duplicate, which stays without a key
                self._users[key] = 1
                chain.held.append(key)
                self._keyed(key)
        chain.key_own(max(chain.keyed, len(chain.shared)), filled)
        chain.keyed = filled

    def _reuse(self, chain: Chain, shared: list[int], own: int) -> None:
        for key in shared:
            users = self._users.get(key, 0)
            if not users:
                self._lru.pop(key, None)
            self._users[key] = users + 1
        for run in chain.reuse_own(own):
            del self._lru[run]
        chain.held, chain.keyed = shared, len(shared) + own

    def _touch_tail(self, chain: Chain) -> None:
        """Count the copy of a partly filled block as its latest use."""
        if chain.tail is not None and chain.tail in self._lru:
            self._lru.pop(chain.tail, None)
            self._lru[chain.tail] = next(self._frees)

    def _keep_tail(self, request: Request, chain: Chain) -> None:
        """Key the partly filled last block of a prompt that was computed, unless its block got a key as a full one."""
        tail, place = chain.tail, request.input_tokens // self.block_size
        if tail is None or request.computed_tokens < request.input_tokens or chain.keyed > place:
            return
        if tail not in self._users and tail not in self._lru:
            self._users[tail] = 1
            chain.held.append(tail)

    def _leave(self, key: int) -> None:
        if self._users[key] > 1:
            self._users[key] -= 1
            return
        del self._users[key]
        self._lru[key] = next(self._frees)
        self._idle += 1
        self.free += self._pages.full

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
            else:
                self._evicted(oldest)

    def _has(self, key: int) -> bool:
        """Tell whether a block with *key* can be hit."""
        return key in self._users or key in self._lru

    def _load(self, key: int) -> None:
        """Bring the block with *key* into the pool, which has it no more; only a cache with tiers can."""
        raise NotImplementedError

    def _keyed(self, key: int) -> None:
        """Note that a block got *key*."""

    def _evicted(self, key: int) -> None:
        """Note that the block with *key* is evicted."""
