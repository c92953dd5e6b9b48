"""Running sequences left without token budget: they cost nothing, and still count towards `max_num_seqs`.

First come, first served, nobody ever is: who is admitted has budget, and so has everybody before it. So the state is
made by hand here, as another order of service may bring it about.
"""

from collections import deque

import pytest

from sim.batch import Blocked
from sim.kv import KvCache
from sim.request import Request
from sim.scheduler import Running, State
from sim.scheduler.chunked_prefill import ChunkedPrefill


@pytest.fixture
def state():
    """Two decodes with 4 computed tokens each, one block each, and one request that waits."""
    kv, running = KvCache(10, 4), Running(4)
    for index in range(2):
        request = Request(index, 4, 9)
        kv.admit(request, 0, 4)
        request.computed_tokens, request.emitted_tokens = 4, 1
        running.admit(request)
        running.begin_decoding(request)
    return State(deque([Request(2, 4, 1)]), running, kv)


def test_the_last_admitted_stalls_and_keeps_its_seat(state):
    _, second = state.running.order
    decision = ChunkedPrefill(max_num_batched_tokens=1, max_num_seqs=2).schedule(state)
    assert decision.silenced == [second]
    assert (state.running.decoding, len(state.running), list(state.running.stalled)) == (1, 2, [second])
    assert state.running.context_tokens() == 5  # of the first alone
    assert decision.blocked is Blocked.MAX_NUM_SEQS
    assert state.kv.used == 3  # the first took a second block
    assert not decision.lasting


def test_it_goes_on_when_there_is_budget(state):
    scheduler = ChunkedPrefill(max_num_batched_tokens=1, max_num_seqs=2)
    first, second = state.running.order
    scheduler.schedule(state)
    state.running.advance(1)
    state.running.leave(first)
    state.kv.release(first)
    decision = scheduler.schedule(state)
    assert decision.resumed == [second]
    assert (state.running.decoding, not state.running.stalled) == (1, True)
    assert decision.blocked is Blocked.TOKEN_BUDGET
