"""Blocks that leave the pool and come back."""

import pytest

from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.kv import KvCache, Tier, TieredKvCache
from sim.request import Request
from sim.simulate import prepare
from sim.yamlfile import parse_yaml


def cache(*tiers, write="write_back", blocks=4):
    return TieredKvCache(blocks, 2, prefix_caching=True).keep_in(tiers, write)


def serve(kv, name, index=0, tokens=4):
    """Compute the prompt *name* of two blocks and one token more; return what it hit and how long that loads."""
    request = Request(index, tokens + 1, 1, segments=((name, tokens),))
    hit = kv.hits(request)
    assert kv.admit(request, hit, request.input_tokens - hit)
    load_s = kv.take_load_s()
    kv.computed(request, request.input_tokens - hit)
    kv.release(request)
    kv.forget(request)
    return hit, load_s


def test_what_was_evicted_is_loaded():
    kv = cache(Tier(10, 0.5))
    assert [serve(kv, name) for name in "aba"] == [(0, 0.0), (0, 0.0), (4, 0.5)]  # b has left one block of a


@pytest.mark.parametrize(("write", "found"), [("write_back", 4), ("write_through", 4)])
def test_both_ways_to_write_keep_what_has_room(write, found):
    kv = cache(Tier(10, 1.0), write=write)
    assert [serve(kv, name)[0] for name in "abcdabcd"] == [0] * 4 + [found] * 4


def test_written_through_at_once_or_when_evicted():
    through, back = cache(Tier(1, 1.0), write="write_through"), cache(Tier(1, 1.0))
    for kv in (through, back):
        serve(kv, "a")
    assert [len(kv._kept[0]) for kv in (through, back)] == [1, 0]


def test_a_tier_passes_on_what_it_has_no_room_for():
    kv = cache(Tier(2, 1.0), Tier(100, 8.0))
    for name in "abcd":
        serve(kv, name)
    hit, load_s = serve(kv, "a")
    assert (hit, load_s) == (4, 16.0)
    assert kv.take_load_s() == 0.0


def test_without_room_it_is_lost():
    kv = cache(Tier(1, 1.0))
    for name in "abcd":
        serve(kv, name)
    assert serve(kv, "a") == (0, 0.0)


def experiment(engine, gpu="H100-SXM-80GB"):
    text = f"""
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {{gpu: {gpu}, parallelism: {{tp: 2}}}}
engine: {engine}
workload: {{arrivals: {{kind: offline}}, lengths: {{kind: fixed, input_tokens: 9, output_tokens: 9}}}}
"""
    return experiment_of(parse_yaml(text, "tiers.yaml"))


def test_bytes_become_blocks_and_seconds():
    """A token of Llama-3.1-8B takes 131,072 B, half of them on either accelerator; PCIe 5.0 carries 63 GB/s."""
    engine = "{kv_offload: {tiers: [{capacity: 2 MiB}, {capacity: 1 GiB, bandwidth: 1 GB/s}]}}"
    memory, disk = prepare(experiment(engine)).engine.tiers
    assert (memory.blocks, disk.blocks) == (1, 512)
    assert memory.block_s == pytest.approx(16 * 65536 / 63e9, rel=0.02)
    assert disk.block_s == pytest.approx(16 * 65536 / 1e9)


def test_swapped_blocks_come_back_as_they_were():
    kv = KvCache(4, 2, swap=Tier(3, 0.25))
    request, other = Request(0, 5, 4), Request(1, 7, 1)
    assert kv.admit(request, 0, 5)
    kv.computed(request, 5)
    assert kv.swap_out(request)
    assert (kv.used, request.computed_tokens, kv.take_load_s()) == (0, 5, 0.75)
    assert kv.admit(other, 0, 7)
    assert not kv.swap_in(request, 1)
    kv.computed(other, 7)
    assert not kv.swap_out(other)  # four blocks, where one is left
    kv.release(other)
    assert kv.swap_in(request, 1)
    assert (kv.used, kv.take_load_s()) == (3, 0.75)
    assert kv.swap_out(request)
    kv.forget(request)  # its client did not wait
    assert kv.admit(other, 0, 2)
    other.computed_tokens = 6
    assert kv.swap_out(other)


def test_swap_space_is_bytes_of_each_accelerator():
    swapping = "{scheduler: {kind: continuous, preemption_mode: swap}, swap_space: 1 GiB}"
    swap = prepare(experiment(swapping)).engine.swap
    assert swap.blocks == 2**30 // (16 * 65536)
    assert swap.block_s == pytest.approx(16 * 65536 / 63e9, rel=0.02)


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("{swap_space: 1 GiB}", "chunked_prefill does not swap"),
        ("{kv_offload: {tiers: [{capacity: 1 GiB}, {capacity: 1 GiB}]}}", r"tiers\.1: bandwidth is missing"),
        ("{prefix_caching: false, kv_offload: {tiers: [{capacity: 1 GiB}]}}", "no prefix cache"),
    ],
)
def test_tiers_that_cannot_be(engine, message):
    with pytest.raises(ConfigError, match=message):
        prepare(experiment(engine))
