import numpy as np
import pytest
from handmade import requests_of, strides_of, two_answers

from sim.metrics.timeline import timeline_of


def test_averages_add_up_to_the_whole():
    requests, strides = two_answers()
    timeline = timeline_of(requests, strides, kv_blocks=[20])
    window_s = 2.625 / 1000
    assert len(timeline.time_s) == 1000
    assert (timeline.output_tok_s * window_s).sum() == pytest.approx(7)
    assert (timeline.running * window_s).sum() == pytest.approx(np.dot(strides.running, strides.duration_s))
    assert (timeline.kv_utilization * window_s).sum() == pytest.approx(13.25 / 20)


def test_levels_are_those_of_the_moment():
    requests, strides = two_answers()
    timeline = timeline_of(requests, strides, kv_blocks=[20])
    running = np.interp([0.5, 1.25, 1.75, 2.5], timeline.time_s, timeline.running)
    assert running == pytest.approx([0, 1, 2, 1])


def test_replicas_have_their_own_rows():
    requests = requests_of((0.0, 0.0, 1.0, 1.0, 1), (0.0, 0.0, 1.0, 1.0, 1, {"replica": 1}))
    strides = strides_of({"first_s": 1.0, "running": 3}, {"replica": 1, "first_s": 1.0, "running": 5})
    timeline = timeline_of(requests, strides, kv_blocks=[0, 0])
    assert {replica: timeline.running[timeline.replica == replica].mean() for replica in (0, 1)} == {0: 3.0, 1: 5.0}
    assert np.isnan(timeline.kv_utilization).all()


def test_many_replicas_get_fewer_windows():
    strides = strides_of(*({"replica": replica, "first_s": 1.0} for replica in range(500)))
    assert len(timeline_of(requests_of((0.0, 0.0, 1.0, 1.0, 1)), strides, [1] * 500).time_s) == 100_000


def test_nothing_served_has_no_rows():
    assert len(timeline_of(requests_of(), strides_of(), [1]).time_s) == 0
