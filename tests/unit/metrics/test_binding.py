import pytest
from handmade import strides_of

from sim.metrics.binding import binding_limit
from sim.metrics.rows import Blocked

SHARES = {"compute": 0.2, "memory": 0.7, "host": 0.1}


def stride(duration_s, blocked=Blocked.NO, waiting=1):
    return {"first_s": duration_s, "blocked": blocked, "waiting": waiting, "decodes": 1}


@pytest.mark.parametrize(
    ("code", "limit"),
    [
        (Blocked.MAX_NUM_SEQS, "max_num_seqs"),
        (Blocked.KV_BLOCKS, "kv_blocks"),
        (Blocked.TOKEN_BUDGET, "max_num_batched_tokens"),
        (Blocked.BATCHING, "batching"),
    ],
)
def test_what_holds_back_the_queue_limits(code, limit):
    binding = binding_limit(strides_of(stride(3.0, code), stride(7.0)), 10.0, SHARES)
    assert binding.limit == limit
    assert "30% of the time" in binding.sentence


def test_the_longest_block_counts_not_the_most_frequent():
    rows = [stride(0.5, Blocked.TOKEN_BUDGET)] * 4 + [stride(3.0, Blocked.KV_BLOCKS), stride(5.0)]
    assert binding_limit(strides_of(*rows), 10.0, SHARES).limit == "kv_blocks"


def test_a_full_batch_with_nobody_waiting_holds_back_nobody():
    full = stride(10.0, Blocked.MAX_NUM_SEQS, waiting=0)
    assert binding_limit(strides_of(full), 10.0, SHARES).limit == "memory"


def test_idle_replicas_lack_demand():
    binding = binding_limit(strides_of(stride(4.0)), 10.0, SHARES)
    assert (binding.limit, binding.idle_share) == ("demand", pytest.approx(0.6))


def test_else_the_largest_share_of_the_iteration():
    assert binding_limit(strides_of(stride(9.0)), 10.0, SHARES).sentence == "memory bandwidth: 70% of iteration time"
    assert binding_limit(strides_of(stride(9.0)), 10.0, {}).limit == "iteration_time"


def test_a_run_without_strides_lacks_demand():
    assert binding_limit(strides_of(), 0.0, {}).limit == "demand"
