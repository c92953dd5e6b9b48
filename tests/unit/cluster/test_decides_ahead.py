"""Iterations that are decided when the one before begins (vLLM's asynchronous scheduling), of one second each."""

import math

import pytest
from serving import Ask, Case, serve

from sim.cost import Affine
from sim.request import Status
from sim.scheduler.chunked_prefill import ChunkedPrefill

SECOND = Affine(base_s=1.0).build()


@pytest.fixture(params=[False, True], ids=["strides", "iterations"])
def play(request):
    def played(*asks, demands=(), ahead=True, **options):
        case = Case(
            ChunkedPrefill(**options), 100, 4, tuple(Ask(*ask) for ask in asks), demands=demands, decides_ahead=ahead
        )
        return serve(case, cost=SECOND, by_iteration=request.param)[0]

    return played


def test_an_arrival_is_seen_an_iteration_later(play):
    # Iterations begin at every second from 0 on. That of 1 was decided at 0, before 0.5, and that of 2 at 1.
    asks = ((0.0, 4, 9), (0.5, 4, 1), (1.5, 4, 1), (1.75, 4, 1), (2.0, 4, 1))
    assert [request.admitted_s for request in play(*asks)] == [0.0, 2.0, 3.0, 3.0, 3.0]
    assert [request.admitted_s for request in play(*asks, ahead=False)] == [0.0, 1.0, 2.0, 2.0, 2.0]


def test_its_first_token_waits_as_long(play):
    first, second = play((0.0, 4, 9), (4.5, 4, 2))
    assert (second.first_token_s, second.last_token_s) == (7.0, 8.0)
    assert first.last_token_s == 9.0


def test_an_idle_engine_begins_at_once(play):
    assert [request.admitted_s for request in play((0.25, 4, 1), (10.5, 4, 1))] == [0.25, 10.5]


def test_where_nothing_else_is_to_be_computed_the_next_iteration_is_decided_late(play):
    # The answer ends at 3; who came since 2 begins then, as nothing was decided for that iteration.
    assert [request.admitted_s for request in play((0.0, 4, 3), (2.5, 4, 1))] == [0.0, 3.0]


def test_a_late_request_that_is_given_up_is_served_nowhere(play):
    demands = ({"patience_s": math.inf}, {"patience_s": 1.0})
    requests = play((0.0, 4, 9), (0.5, 4, 1), demands=demands)
    assert requests[1].status is Status.FAILED
    assert math.isnan(requests[1].admitted_s)
    assert requests[0].last_token_s == 9.0


def test_late_requests_count_as_queued(play):
    requests = play((0.0, 4, 9), (0.25, 4, 1), (0.5, 4, 1), max_num_queued_reqs=1)
    assert [request.status for request in requests] == [Status.COMPLETED, Status.COMPLETED, Status.REJECTED]


def test_a_late_request_overtakes_a_queue_that_lacks_blocks(play):
    # 40 to 43 of the 100 blocks are taken, the second request lacks 75, and the third, of fewer tokens, needs one.
    asks = ((0.0, 160, 12), (0.5, 300, 9), (3.5, 4, 1))
    requests = play(*asks, order="shortest_job_first")
    assert [request.admitted_s for request in requests] == [0.0, 12.0, 5.0]
    assert [request.admitted_s for request in play(*asks)] == [0.0, 12.0, 12.0]


def test_where_all_leave_those_who_came_in_time_begin_before_those_who_did_not(play):
    # The second request waits for the only place, which is free from 4 on: the iteration of 4 was decided at 3.
    demands = ({"patience_s": 3.5}, {"patience_s": math.inf}, {"patience_s": math.inf})
    requests = play((0.0, 4, 99), (0.5, 4, 2), (3.75, 4, 2), demands=demands, max_num_seqs=1)
    assert [request.admitted_s for request in requests] == [0.0, 4.0, 6.0]
    requests = play((0.0, 4, 99), (0.0, 4, 99), (0.5, 4, 9), (3.75, 4, 2), max_num_seqs=2,
                    demands=({"patience_s": 3.5}, {"patience_s": 3.5}, *demands[1:]))  # fmt: skip
    assert [request.admitted_s for request in requests[2:]] == [4.0, 5.0]
