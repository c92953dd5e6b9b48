"""The KV cache of one replica, as its scheduler sees it: blocks to ask for, prefixes to hit."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from itertools import count, pairwise

from sim.kv.chain import Chain, ChainBook, Run
from sim.kv.eviction import Eviction, Idle, Ranked
from sim.kv.pages import Pages
from sim.kv.tier import Tier
from sim.request import Request

__all__ = ["KvCache"]


class KvCache:
    """A pool of *num_blocks* blocks of *block_size* tokens.

    A running request holds ``ceil(computed_tokens / block_size)`` blocks, so no count is kept for it; with
    *draft_tokens* also those for the rejected ones of its last draft. With *prefix_caching*, full blocks of prompts are
    keyed by their content (with *cache_generated* those of answers, too): a keyed block that nobody uses stays until
    it is evicted, least recently freed first unless *eviction* says otherwise, of one request the later blocks first.
    Blocks that were never keyed are taken before any eviction.

    Where layers have block tables of their own, *pages* says what a sequence holds. Then the blocks of all tables that
    keep every token are keyed together; windows and states are each request's own, also where it hits a prefix.

    With *partial_blocks*, the last, partly filled block of a prompt is kept too when its request leaves. Whoever begins
    with the whole of that prompt copies it.

    Source: block pool and block hashes of vLLM V1 (`vllm/v1/core/block_pool.py`, `kv_cache_manager.py`).

    With *swap*, requests that are preempted may move their blocks to the host's memory and back.

    Attributes
    ----------
    free
        Blocks that can be had, evictable ones included.
    settle
        Brings the `computed_tokens` of a running request up to date; whoever lets requests decode in strides sets it.
    load_s
        What is hit elsewhere or is swapped takes so long to move, until somebody takes note of it [s].
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
        self._swap = swap or Tier(0, 0.0)
        self._swap_free, self.load_s = self._swap.blocks, 0.0
        self.draft_tokens, self._pages = draft_tokens, pages or Pages(block_size)
        self.num_blocks, self.block_size, self.prefix_caching = num_blocks, block_size, prefix_caching
        self._cache_generated = prefix_caching and cache_generated
        self.free = num_blocks
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

    @property
    def used(self) -> int:
        """Blocks that running requests hold."""
        return self.num_blocks - self.free

    @property
    def room_tokens(self) -> int:
        """Tokens that all blocks hold; where sequences have several tables, in those that keep every token."""
        return self.num_blocks // max(self._pages.full, 1) * self.block_size

    def blocks(self, tokens: int) -> int:
        """Return the blocks that *tokens* tokens fill or touch."""
        return -(-tokens // self.block_size)

    def fits(self, request: Request) -> bool:
        """Tell whether the pool, if empty, could hold *request* to its last token."""
        return self.most_blocks(request) <= self.num_blocks

    def most_blocks(self, request: Request) -> int:
        """Return the blocks that *request* may come to hold; where its KV is sent here, all of that comes at once."""
        most = self._pages.most(request.total_tokens + self.draft_tokens)
        return max(most, self._pages.held(0, request.remote_tokens)) if request.remote_tokens else most

    def room(self, request: Request) -> int:
        """Return how many more tokens a running *request* could get."""
        blocks, most_tokens = self._held(request) + self.free, self.num_blocks * self.block_size
        return bisect_right(range(most_tokens), blocks, key=lambda n: self._pages.held(request.computed_tokens, n)) - 1

    def take(self, blocks: int) -> None:
        """Take *blocks* of the free blocks; the caller has checked `free`."""
        self.free -= blocks
        full = self._pages.full
        keyed = self._idle * full
        if keyed > self.free:
            self._evict(-((self.free - keyed) // full))

    def move(self, most: int, net: int) -> None:
        """Take *most* blocks, if not all at once, and free some, so that *net* are taken in the end."""
        self.take(most)
        self.free += most - net

    def grow(self, request: Request, tokens: int) -> bool:
        """Get the blocks for *tokens* more tokens of a running *request*; return False if there are too few."""
        wanted = self._pages.held(request.computed_tokens, tokens) - self._held(request)
        if wanted > self.free:
            return False
        self.take(wanted)
        return True

    def give_back(self, request: Request, tokens: int) -> None:
        """Free the blocks that *request* got for *tokens* more tokens, which it will not compute."""
        if tokens:
            self.free += self._pages.held(request.computed_tokens, tokens) - self._held(request)

    def hits(self, request: Request) -> int:
        """Return the tokens of *request*'s prompt that the prefix cache holds; at least one is left to compute."""
        if not self.prefix_caching:
            return 0
        self._publish_writers(request)
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

    def pass_by(self, request: Request, tokens: int) -> None:
        """Count *tokens* more of *request* as computed, and free what its windows have left behind."""
        before = request.computed_tokens
        request.computed_tokens += tokens
        if self._pages.windows:
            self.free += self._pages.left_behind(before, request.computed_tokens)

    def publish(self, request: Request) -> None:
        """Key the blocks that *request* has filled.

        The keys of an answer can wait until it leaves, or somebody comes to whom it is a part of the prompt.
        """
        self._expected.discard(request)
        if self.prefix_caching:
            self._publish_writers(request)
            self._key(request)

    def take_load_s(self) -> float:
        """Return how long what was hit elsewhere or is swapped takes to move, and forget it [s]."""
        load_s, self.load_s = self.load_s, 0.0
        return load_s

    def swap_out(self, request: Request) -> bool:
        """Move the blocks of *request*, which is preempted, to the host's memory; return False if they do not fit."""
        held = self._held(request)
        if held > self._swap_free:
            return False
        self._swap_free -= held
        self.load_s += held * self._swap.block_s
        request.swapped_blocks = held
        self.release(request)
        return True

    def swap_in(self, request: Request, tokens: int, *, spare: int = 0) -> bool:
        """Bring *request* back with room for *tokens* more; return False if fewer than *spare* blocks were left."""
        wanted = self._pages.held(request.computed_tokens, tokens)
        if wanted > self.free - spare:
            return False
        self.take(wanted)
        self.load_s += request.swapped_blocks * self._swap.block_s
        self._forget_swapped(request)
        if self.prefix_caching:
            self._key(request)
        return True

    def _forget_swapped(self, request: Request) -> None:
        self._swap_free += request.swapped_blocks
        request.swapped_blocks = 0

    def release(self, request: Request) -> None:
        """Free all blocks of *request*, which has finished or is preempted; its `computed_tokens` are up to date."""
        held, request.rejected_tokens = self._held(request), 0
        if not self.prefix_caching:
            self.free += held
            self._expected.discard(request)
            return
        self._key(request)
        answer = request.output_segment
        if answer is not None and self._writers.get(answer) is request:
            del self._writers[answer]
        chain = self._chains[request]
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

    def _held(self, request: Request) -> int:
        return self._pages.held(request.computed_tokens, request.rejected_tokens)

    def forget(self, request: Request) -> None:
        """Drop what is known of a *request* that never comes back; its keyed blocks stay until they are evicted."""
        self._chains.pop(request, None)
        self._forget_swapped(request)

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
        if not self._writers:
            return
        # Exact but for one corner: if a prompt computed a block ahead of its writer, and that block was evicted after
        # the writer made its duplicate, the duplicate gets the key here.
        for writer in self._writers_for(request):
            self.settle(writer)
            self._key(writer)

    def _key(self, request: Request) -> None:
        if request in self._expected:
            return
        chain = self._chain(request)
        known = request.computed_tokens
        if not self._cache_generated:
            known = min(known, request.input_tokens)
        filled = known // self.block_size
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
