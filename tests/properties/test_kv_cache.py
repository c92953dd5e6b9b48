"""The KV cache under whatever is asked of it, and engines on the smallest pools that can serve at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from serving import Ask, Case, cases, fate, random_runs, schedulers, serve

from sim.kv import KvCache, Pages, WindowTables
from sim.policy import kinds_of
from sim.request import Request
from sim.scheduler import Scheduler

KINDS = sorted(kinds_of("sim.scheduler", Scheduler))


class Blocks(RuleBasedStateMachine):
    """Requests come, grow, are preempted and leave; beside the cache stands what can be known from outside.

    A key is what the tokens up to the end of a block contain.
    """

    @initialize(
        size=st.sampled_from((1, 2, 4)),
        blocks=st.integers(1, 24),
        caching=st.booleans(),
        generated=st.booleans(),
        full=st.integers(1, 2),
        windows=st.lists(st.sampled_from([WindowTables(1, 1, 2), WindowTables(2, 8, 2)]), max_size=1),
        states=st.integers(0, 1),
        eviction=st.sampled_from(("lru", "lru", "lfu", "slru", "priority")),
    )
    def build(self, size, blocks, caching, generated, full, windows, states, eviction):
        self.pages = Pages(size, full, tuple(windows), states)
        how = {"prefix_caching": caching, "cache_generated": generated, "eviction": eviction}
        self.kv = KvCache(blocks, size, pages=self.pages, **how)
        self.size, self.caching, self.generated = size, caching, caching and generated
        self.running: list[Request] = []
        self.preempted: list[Request] = []
        self.computed: set[tuple] = set()  # every key that was ever filled
        self.copied: set[Request] = set()  # who filled one of those again, perhaps as a duplicate without a key
        self.count = 0

    def content(self, request: Request, tokens: int) -> tuple:
        named = [(name, place) for name, length in request.segments for place in range(length)]
        own = [(request.index, place) for place in range(len(named), request.input_tokens)]
        answer = [(request.output_segment, place) for place in range(request.output_tokens)]
        return tuple((named + own + answer)[:tokens])

    def compute_tokens(self, request: Request, tokens: int) -> None:
        """Let *request*, whose blocks are taken, compute *tokens*, as an iteration does."""
        before = request.computed_tokens
        self.kv.computed(request, tokens)
        request.emitted_tokens = max(request.emitted_tokens, request.computed_tokens - request.input_tokens + 1)
        known = request.computed_tokens if self.generated else min(request.computed_tokens, request.input_tokens)
        for block in range(before // self.size, known // self.size):
            key = self.content(request, (block + 1) * self.size)
            if key in self.computed:
                self.copied.add(request)
            self.computed.add(key)

    @rule(shared=st.integers(0, 3), more=st.integers(0, 9), output=st.integers(1, 12), tokens=st.integers(1, 30))
    def arrive(self, shared, more, output, tokens):
        segments = (("a", shared * self.size),) if shared else ()
        request = Request(self.count, (shared * self.size + more) or 1, output, segments=segments)
        request.output_segment = f"answer {self.count}"
        self.count += 1
        if self.kv.fits(request):
            self.admit(request, tokens)

    @precondition(lambda self: self.preempted)
    @rule(data=st.data(), tokens=st.integers(1, 30))
    def resume(self, data, tokens):
        request = data.draw(st.sampled_from(self.preempted))
        self.preempted.remove(request)
        self.admit(request, tokens)

    def admit(self, request: Request, tokens: int) -> None:
        hit, free = self.kv.hits(request), self.kv.free
        assert hit % self.size == 0
        assert 0 <= hit <= (request.input_tokens - 1) // self.size * self.size
        for block in range(hit // self.size):
            assert self.content(request, (block + 1) * self.size) in self.computed
        before = request.cached_tokens
        tokens = min(tokens, request.prefill_tokens - hit)
        if self.kv.admit(request, hit, tokens):
            assert request.cached_tokens == before + hit
            self.running.append(request)
            self.compute_tokens(request, tokens)
        else:
            assert self.kv.free == free
            assert self.pages.held(hit, tokens) > free  # with those that it hits, which may be free as well
            self.preempted.append(request)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), tokens=st.integers(1, 20))
    def compute(self, data, tokens):
        request = data.draw(st.sampled_from(self.running))
        tokens = min(tokens, request.total_tokens - 1 - request.computed_tokens)
        if tokens > 0 and self.kv.grow(request, tokens):
            self.compute_tokens(request, tokens)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), comes_back=st.booleans())
    def leave(self, data, comes_back):
        request = data.draw(st.sampled_from(self.running))
        self.running.remove(request)
        self.kv.release(request)
        self.nothing_is_lost(request)
        self.copied.discard(request)
        if comes_back:
            request.computed_tokens = 0
            self.preempted.append(request)
        else:
            self.kv.forget(request)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def look(self, data):
        self.nothing_is_lost(data.draw(st.sampled_from(self.running)))

    def nothing_is_lost(self, request: Request) -> None:
        """Whoever has the same named prompt hits every block of it that *request* has computed."""
        if self.caching and request not in self.copied:
            again = Request(self.count, request.input_tokens + 1, 1, segments=request.segments)
            self.count += 1
            named = sum(length for _, length in request.segments)
            assert self.kv.hits(again) >= min(request.computed_tokens, named) // self.size * self.size
            self.kv.forget(again)

    @invariant()
    def blocks_are_conserved(self):
        if not hasattr(self, "kv"):
            return
        assert 0 <= self.kv.free <= self.kv.num_blocks
        assert self.kv.used + self.kv.free == self.kv.num_blocks
        held = [self.pages.held(request.computed_tokens) for request in self.running]
        assert max(held, default=0) <= self.kv.used <= sum(held)  # shared blocks count once
        if not self.caching:
            assert self.kv.used == sum(held)
        if not self.running:
            assert self.kv.free == self.kv.num_blocks


def test_blocks_are_conserved_and_hits_are_true():
    run_state_machine_as_test(Blocks, settings=random_runs(60))


@st.composite
def exact_pools(draw, kind):
    """Requests of one size in a pool of exactly one of them, prefixes shared or not."""
    size = draw(st.sampled_from((1, 4, 16)))
    tokens, output = draw(st.integers(1, 4 * size)), draw(st.integers(1, 4 * size))
    segments = (("a", tokens),) if draw(st.booleans()) else ()
    asks = tuple(Ask(0.0, tokens, output, segments, f"answer {place}") for place in range(draw(st.integers(1, 6))))
    caching = draw(st.booleans())
    blocks = -(-(tokens + output) // size)
    return Case(draw(schedulers(kind)), blocks, size, asks, caching, caching and draw(st.booleans()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_of_exactly_one_request_serves_all_of_them(kind):
    @random_runs(40)
    @given(exact_pools(kind))
    def check(case):
        requests, _ = serve(case)
        for request in requests:
            assert request.status.name == ("REJECTED" if case.refuses(request) else "COMPLETED")
            assert request.emitted_tokens in (0, request.output_tokens)

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_every_request_ends_and_preemption_does_not_cycle(kind):
    """Between two preemptions of anybody some token is computed that was not before: an iteration emits or prefills."""

    @random_runs(40)
    @given(cases(kind))
    def check(case):
        requests, strides = serve(case, by_iteration=True)
        assert {fate(request)[0] for request in requests} <= {"completed", "rejected"}
        for request in requests:
            assert (request.status.name == "REJECTED") == case.refuses(request)
        assert ((strides.decodes > 0) | (strides.prefill_tokens > 0)).all()
        assert (strides.kv_blocks <= case.num_blocks).all()
        assert strides.preempted.sum() == sum(request.preemptions for request in requests)

    check()
