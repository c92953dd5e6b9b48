from collections import Counter
from pathlib import Path

import pytest

from sim.workload import Workload, generate

LENGTHS = {"kind": "fixed", "input_tokens": 100, "output_tokens": 1}


def segments(**prefix):
    workload = Workload(arrivals={"kind": "offline"}, lengths=LENGTHS, num_requests=4000, shared_prefix=prefix)
    return [request.segments for request in generate(workload, 1, Path()).requests]


def test_all_prompts_share_one_prefix():
    assert set(segments(tokens=64)) == {(("prefix-0", 64),)}


def test_a_prefix_is_no_longer_than_the_prompt():
    assert set(segments(tokens=500)) == {(("prefix-0", 100),)}


def test_share_and_groups():
    counts = Counter(segments(tokens=64, share=0.75, groups=3))
    assert counts.pop(()) == pytest.approx(1000, abs=110)  # binomial, standard deviation 27
    assert len(counts) == 3
    assert all(count == pytest.approx(1000, abs=110) for count in counts.values())
