"""Clients, router and replicas together; what a single engine does is in tests/reference."""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
import pytest
from serving import Ask, Case, Closed, serve

from sim.cluster import Cluster, Pool
from sim.cost import Affine
from sim.cost.affine import AffineStep
from sim.metrics.rows import RequestRows
from sim.request import Status
from sim.router.least_loaded import LeastLoaded
from sim.router.round_robin import RoundRobin
from sim.scheduler.chunked_prefill import ChunkedPrefill
from sim.scheduler.static import Static
from sim.workload.traffic import Traffic

SECOND = Affine(base_s=1.0).build()


def play(*asks, scheduler=None, blocks=100, cost=SECOND, **cluster):
    case = Case(scheduler or ChunkedPrefill(), blocks, 4, tuple(Ask(*ask) for ask in asks))
    return serve(case, cost=cost, **cluster)


def test_round_robin_takes_turns():
    requests, _ = play(*[(0.0, 4, 1)] * 5, replicas=2, router=RoundRobin())
    assert [request.replica for request in requests] == [0, 1, 0, 1, 0]


def test_least_loaded_counts_what_is_not_answered_yet():
    # 0 runs until 9. 1 goes to replica 1, and so does 2, as 1 is answered by then. Then both have one request: 3 goes
    # to the first of equals, 4 to the other.
    asks = ((0.0, 4, 9), (0.0, 4, 1), (2.0, 4, 9), (2.0, 4, 1), (2.5, 4, 1))
    requests, _ = play(*asks, replicas=2, router=LeastLoaded())
    assert [request.replica for request in requests] == [0, 1, 1, 0, 1]


def test_a_rejected_request_loads_nobody():
    requests, _ = play((0.0, 400, 1), (0.0, 4, 9), (0.0, 4, 1), replicas=2, router=LeastLoaded())
    assert [request.replica for request in requests] == [0, 0, 1]
    assert requests[0].status is Status.REJECTED


def test_longer_than_the_window_is_rejected_with_both_numbers():
    case = Case(ChunkedPrefill(), 100, 4, (Ask(0.0, 50, 50), Ask(0.0, 50, 51)))
    requests = case.requests()
    engine = dataclasses.replace(case.engine(cost=SECOND), max_model_len=100)
    Cluster([Pool(engine, 1)], RoundRobin(), Traffic(requests)).run()
    assert [request.status for request in requests] == [Status.COMPLETED, Status.REJECTED]
    assert requests[1].reason == "101 tokens exceed max_model_len 100"


def test_progress_counts_answers_and_rejections():
    case = Case(ChunkedPrefill(), 10, 4, (Ask(0.0, 4, 2), Ask(0.5, 400, 1), Ask(1.0, 4, 1)))
    seen = []
    Cluster([Pool(case.engine(), 1)], RoundRobin(), Traffic(case.requests()), seen.append).run()
    assert seen == [1, 2, 3]


def test_a_closed_loop_sends_the_next_when_one_is_answered():
    # Two slots, 0 and 1 at once. 1 is answered at 1 s and 2 sent at once; 0 at 4 s, and 3 half a second after that.
    closed = Closed((0.0, 0.0), (0.5, 0.0, 0.0, 0.0), (0, 1, 2, 3))
    requests, _ = play((0.0, 4, 4), (0.0, 4, 1), (0.0, 4, 9), (0.0, 4, 1), closed=closed)
    assert [request.arrival_s for request in requests] == [0.0, 0.0, 1.0, 4.5]
    assert requests[2].admitted_s == 1.0  # sent and seen at the boundary that answered the one before


def test_a_rejection_also_frees_the_slot():
    closed = Closed((0.0,), (0.0,) * 3, (0, 1, 2))
    requests, _ = play((0.0, 400, 1), (0.0, 400, 1), (0.0, 4, 1), closed=closed, blocks=3)
    assert [request.status.name for request in requests] == ["REJECTED", "REJECTED", "COMPLETED"]
    assert requests[2].arrival_s == 0.0


def test_turns_of_a_session_follow_each_other():
    # 1 s, and 2 s of thinking before the second turn, whatever its own arrival says.
    closed = Closed((), (0.0, 2.0), (0, 0))
    requests, _ = play((0.0, 4, 1), (0.0, 4, 1), closed=closed)
    assert requests[1].arrival_s == 3.0


def test_batches_of_all_replicas_start_when_none_is_to_come():
    requests, _ = play(*[(float(second), 4, 1) for second in range(5)], scheduler=Static(batch_size=4), replicas=2)
    assert [request.admitted_s for request in requests] == [4.0] * 5


@dataclass(frozen=True)
class Slow(AffineStep):
    def admission_delay_s(self, input_tokens):
        return 0.25 * input_tokens


def test_the_engine_sees_a_request_after_its_delay():
    # 4 tokens take 1 s to arrive in the queue, 8 take 2 s: the later but shorter one is first.
    cost = Slow(1.0, 0.0, 0.0, 0.0)
    requests, _ = play((0.0, 8, 1), (0.5, 4, 1), scheduler=ChunkedPrefill(max_num_seqs=1), cost=cost)
    assert [request.queued_s for request in requests] == [2.0, 1.5]
    assert [request.admitted_s for request in requests] == [2.5, 1.5]
    assert RequestRows.of(requests).ttft_s.tolist() == [3.5, 2.0]


def test_rows_of_the_strides():
    # A: prefill 0-1, decodes 1-4 and 4-5; B comes at 3.5 and is prefilled beside it from 4 to 5.
    _, strides = play((0.0, 6, 5), (3.5, 4, 1), blocks=4)
    assert strides.start_s.tolist() == [0.0, 1.0, 4.0]
    assert strides.iterations.tolist() == [1, 3, 1]
    assert strides.decodes.tolist() == [0, 1, 1]
    assert strides.decode_context_tokens.tolist() == [0, 7, 10]
    assert strides.prefill_tokens.tolist() == [6, 0, 4]
    assert strides.kv_blocks.tolist() == [2, 3, 4]
    assert strides.running.tolist() == [1, 1, 2]
    assert strides.steady_gaps.tolist() == [0, 1, 1]
    assert strides.duration_s.tolist() == [1.0, 3.0, 1.0]


@pytest.mark.parametrize("replicas", [1, 3])
def test_every_request_is_accounted_for(replicas):
    asks = [(float(at), 4 + at % 3, 1 + at % 5) for at in range(20)]
    requests, strides = play(*asks, replicas=replicas, router=LeastLoaded(), blocks=2)
    rows = RequestRows.of(requests)
    assert rows.completed.sum() + np.equal(rows.status, Status.REJECTED).sum() == 20
    assert (rows.emitted_tokens[rows.completed] == rows.output_tokens[rows.completed]).all()
    assert np.isin(strides.replica, range(replicas)).all()
    assert all(math.isfinite(request.last_token_s) for request in requests if request.status is Status.COMPLETED)
