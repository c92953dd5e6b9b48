"""One iteration taken apart."""

import pytest

from sim.experiment import experiment_of
from sim.simulate import simulate
from sim.simulate.moment import moment_of
from sim.yamlfile import parse_yaml

TEXT = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: L40S}
workload:
  arrivals: {kind: poisson, rate: 2}
  lengths: {kind: fixed, input_tokens: 500, output_tokens: 50}
  num_requests: 40
"""


@pytest.fixture(scope="module")
def result():
    return simulate(experiment_of(parse_yaml(TEXT, "experiment")))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_operations_sum_to_the_iteration(result, share):
    moment = moment_of(result, share)
    on_gpu = sum(times.seconds for times in moment.operations.values())
    assert on_gpu + moment.seconds.get("host", 0.0) == pytest.approx(moment.total_s)
    assert moment.total_s == pytest.approx(result.setup.engine.cost.pace(moment.batch).first_s)


def test_an_operation_takes_at_least_its_longest_resource(result):
    for times in moment_of(result).operations.values():
        longest = max(times.compute_s, times.memory_s)
        assert times.seconds >= longest + times.link_s + times.fixed_s - 1e-12


def test_moments_go_from_the_first_to_the_last_iteration(result):
    first, last = moment_of(result, 0.0), moment_of(result, 1.0)
    assert first.time_s == result.strides.start_s[0]
    assert last.time_s == result.strides.start_s[-1]


def test_an_affine_cost_has_a_breakdown_without_operations():
    text = TEXT + "cost_model: {kind: affine, base_s: 0.01}\n"
    moment = moment_of(simulate(experiment_of(parse_yaml(text, "experiment"))))
    assert moment.operations == {}
    assert moment.total_s == pytest.approx(0.01)
