import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_search import answer

from sim.errors import InfeasibleError
from sim.study.front import dominators

SPACE = "{kind: pareto, gpus: [H100-SXM-80GB, L40S], tp: [1], precisions: [bf16], concurrency: [1, 8], "


def test_the_front_of_a_square_is_its_far_edge():
    assert dominators([(1, 1), (2, 1), (1, 2), (0, 0)]) == [1, None, None, 1]
    assert dominators([(1, 1), (1, 1)]) == [None, None], "equal points beat nobody"
    assert dominators([]) == []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_dominators_are_on_the_front_and_better(points):
    def beats(a, b):
        return a != b and all(x >= y for x, y in zip(a, b, strict=True))

    for point, by in zip(points, dominators(points), strict=True):
        if by is None:
            assert not any(beats(other, point) for other in points)
        else:
            assert beats(points[by], point)
            assert not any(beats(other, points[by]) for other in points)


def test_speed_for_a_user_is_paid_for_with_output(tmp_path):
    found = answer(tmp_path, SPACE + "knobs: {cost_model.base_s: [0.008, 0.016]}}", slo="null")
    assert len(found.points) == 8
    fast = {point.concurrency: point for point in found.points if point.gpu == "H100-SXM-80GB"}
    assert fast[1].tok_s_user > fast[8].tok_s_user
    assert fast[1].tok_s_gpu < fast[8].tok_s_gpu
    slow = [point for point in found.points if "base_s=0.016" in point.label]
    assert all("speed" in point.dominated for point in slow)
    assert "instead of" in slow[0].dominated["speed"]
    first = found.points[0]
    assert first.tok_s_user == pytest.approx(1 / (0.008 + 2e-5 + 2.2e-8 * 150), rel=0.01)
    assert first.usd_per_mtok == pytest.approx(3.13 / 3600 / first.tok_s_gpu * 1e6)
    json.dumps(found.as_dict(), allow_nan=False)


def test_what_cannot_be_run_says_why(tmp_path):
    found = answer(tmp_path, SPACE + "knobs: {engine.num_gpu_blocks_override: [500, 1]}}")
    assert len(found.unable) == 0
    knobs = "{engine.num_gpu_blocks_override: [null], model: [meta-llama/Meta-Llama-3.1-405B]}"
    with pytest.raises(InfeasibleError, match="none of 2 deployments can be run"):
        answer(tmp_path, SPACE + f"knobs: {knobs}}}")
