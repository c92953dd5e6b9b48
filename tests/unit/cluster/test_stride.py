"""The closed form of a stride against adding its iterations up."""

import random

import pytest

from sim.batch import Batch
from sim.cluster.stride import Stride
from sim.scheduler import Decision


def stride(first_s, growth_s, iterations, start_s=1.5):
    return Stride(start_s, first_s, growth_s, iterations, Batch(decodes=1), Decision(), 0, 1, 1)


def ends_s(one):
    ends_s, at_s = [], one.start_s
    for j in range(one.iterations):
        at_s += one.first_s + j * one.growth_s
        ends_s.append(at_s)
    return ends_s


@pytest.mark.parametrize("growth_s", [0.0, 2**-10, 3 * 2**-8])
def test_ends(growth_s):
    one = stride(2**-4, growth_s, 50)
    assert [one.end_s(k) for k in range(1, 51)] == ends_s(one)
    assert one.end_s() == ends_s(one)[-1]


@pytest.mark.parametrize("growth_s", [0.0, 2**-10, 3 * 2**-8])
def test_the_first_boundary_not_before_a_time(growth_s):
    one, draw = stride(2**-4, growth_s, 50), random.Random(1)
    ends = ends_s(one)
    moments_s = [*ends, *(end_s + 2**-20 for end_s in ends[:-1]), *(draw.uniform(1.5, ends[-1]) for _ in range(200))]
    for at_s in moments_s:
        assert one.iterations_until(at_s) == next(k for k, end_s in enumerate(ends, 1) if end_s >= at_s)


def test_at_least_one_iteration_is_done():
    assert stride(0.25, 0.0, 10).iterations_until(1.5) == 1


def test_decimal_times_keep_the_boundary_that_the_closed_form_has():
    one = stride(0.1, 0.0, 1000, start_s=0.3)
    for k in range(1, 1000):
        assert one.iterations_until(one.end_s(k)) == k
