"""The steady part of a run does not hang on how long the run is."""

import pytest
from small_search import experiment_in

from sim.simulate import simulate
from sim.study.measure import measured
from sim.study.window import Window

IN_STEP = ["workload.lengths={kind: fixed, input_tokens: 100, output_tokens: 50}"]


def closed(folder, requests):
    arrivals = "{kind: closed_loop, concurrency: 16}"
    return experiment_in(folder, "null", arrivals=arrivals, requests=requests, overrides=IN_STEP)


def test_users_in_step_are_served_as_fast_in_a_few_turns_as_in_many(tmp_path):
    few, many = (measured(closed(tmp_path, requests)).output_tok_s for requests in (120, 1600))
    assert few == pytest.approx(many, rel=0.01)


def test_tokens_of_the_whole_run_are_all_tokens(tmp_path):
    result = simulate(closed(tmp_path, 32))
    window = Window.of(result)
    assert len(window.chosen) == 32, "no steady part"
    assert window.output_tokens() == pytest.approx(32 * 50)
