"""When things break, and whom that hits."""

import itertools
import math

import pytest
from pydantic import ValidationError

from sim.failures import Failures, RollingUpdate, Topology, strikes
from sim.workload.streams import stream

GPU_HOURS_PER_INTERRUPTION = 16_384 * 54 * 24 / 419
"""419 unexpected interruptions of 16,384 GPUs in 54 days: The Llama 3 Herd of Models, arXiv 2407.21783, 3.3.4."""


def interruptions(gpus, days, seed):
    """Count what breaks of so many *gpus* in so many *days*."""
    times = strikes(gpus, GPU_HOURS_PER_INTERRUPTION * 3600, stream(seed, "failures of a gpu"))
    return sum(1 for _ in itertools.takewhile(lambda strike: strike[0] < days * 86_400, times))


def test_a_million_gpu_days_at_the_published_rate():
    expected = 1e6 * 24 / GPU_HOURS_PER_INTERRUPTION
    assert expected == pytest.approx(473.6, abs=0.1)
    counts = [interruptions(gpus, 1e6 / gpus, seed) for gpus in (1_000, 16_384, 131_072) for seed in range(20)]
    within = [abs(count - expected) < 1.96 * math.sqrt(expected) for count in counts]
    assert sum(within) >= 52  # of 60 that are each within their 95 % interval, 57 on average
    assert sum(counts) / 60 == pytest.approx(expected, abs=2.58 * math.sqrt(expected / 60))


def test_every_unit_is_struck_alike():
    hits = [0] * 10
    for _, unit in itertools.islice(strikes(10, 1.0, stream(1, "test")), 10_000):
        hits[unit] += 1
    assert sum((count - 1000) ** 2 / 1000 for count in hits) < 21.7  # chi square, 9 degrees of freedom, 1 %


def test_replicas_that_fit_a_node_do_not_straddle_two():
    topology = Topology.of([3, 3, 3, 8, 16], 8)
    assert topology.spans == ((0, 3), (3, 6), (8, 11), (16, 24), (24, 40))
    assert (topology.nodes, topology.gpus) == (5, 40)


@pytest.mark.parametrize(
    ("what", "which", "hit"),
    [
        ("gpu", 0, [0]),
        ("gpu", 6, []),
        ("node", 0, [0, 1]),
        ("node", 4, [4]),
        ("link", 30, [4]),
        ("link", 40, []),
        ("replica", 2, [2]),
    ],
)
def test_who_is_hit(what, which, hit):
    assert Topology.of([3, 3, 3, 8, 16, 1], 8).hit_by(what, which) == hit


def test_an_update_that_could_never_go_on_is_refused():
    with pytest.raises(ValidationError, match="nothing could ever be replaced"):
        RollingUpdate(at_s=0, what="rolling_update", max_surge=0)
    with pytest.raises(ValidationError):
        Failures(events=({"what": "flood", "at_s": 1},))
