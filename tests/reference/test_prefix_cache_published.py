"""Hits of a prefix cache of limited size, against an independent evaluation of the Mooncake traces."""

import pytest
from conftest import SHARED

from sim.kv import KvCache
from sim.workload import Workload, generate

BLOCKS = (1_000, 3_000, 10_000, 30_000, 50_000)
"""Capacities, in blocks of 512 tokens."""


@pytest.mark.shared
@pytest.mark.parametrize(
    ("trace", "unlimited", "curve"),
    [
        ("conversation", 0.374, (0.045, 0.067, 0.216, 0.332, 0.362)),
        ("synthetic", 0.651, (0.086, 0.194, 0.432, 0.636, 0.651)),
    ],
)
def test_hits_by_size_of_the_cache(trace, unlimited, curve):
    """Mooncake hashes the last block of a prompt even where it is not full, which `partial_blocks` keeps."""
    path = SHARED / "data" / "traces" / f"mooncake_{trace}_trace.jsonl"
    requests = generate(Workload(arrivals={"kind": "trace", "path": str(path)}), 1, SHARED).requests
    for blocks, share in zip((*BLOCKS, 10**7), (*curve, unlimited), strict=True):
        assert hit_share(requests, blocks) == pytest.approx(share, abs=0.001)


def hit_share(requests, blocks):
    """Return the share of prompt tokens that are hit when one prompt after the other is computed and leaves."""
    kv = KvCache(blocks, 512, prefix_caching=True, partial_blocks=True)
    hits = 0
    for request in requests:
        hit = kv.hits(request)
        assert kv.admit(request, hit, request.input_tokens - hit)
        kv.computed(request, request.input_tokens - hit)
        kv.release(request)
        kv.forget(request)
        hits += hit
    return hits / sum(request.input_tokens for request in requests)
