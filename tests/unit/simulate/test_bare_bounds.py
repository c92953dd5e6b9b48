"""Bounds that were hardly meant in seconds are named."""

import pytest

from sim.experiment import experiment_of
from sim.simulate.bare_bounds import bare_bound_warnings
from sim.yamlfile import parse_yaml

HEAD = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
workload:
  arrivals: {kind: poisson, rate: 1}
  lengths: {kind: preset, name: chat}
  classes: [{name: a, share: 0.5}, {name: b, share: 0.5, slo: CLASS}]
slo: OWN
"""


def told(own, of_class="{}"):
    text = HEAD.replace("OWN", own).replace("CLASS", of_class)
    return list(bare_bound_warnings(experiment_of(parse_yaml(text, "bounds.yaml"))))


def test_a_long_bare_number_is_named_with_its_unit():
    assert told("{ttft_p95: 2000, goodput: 0.9}") == ["slo.ttft_p95: 2000 s; a number without a unit is seconds"]
    assert told("{tpot_p99: 50, itl_p50: 1.5, e2e_p90: 10000}") == [
        "slo.tpot_p99: 50 s; a number without a unit is seconds",
        "slo.itl_p50: 1.5 s; a number without a unit is seconds",
        "slo.e2e_p90: 10000 s; a number without a unit is seconds",
    ]


def test_of_classes_too():
    assert told("{}", "{ttft_p95: 2000}") == [
        "workload.classes.1.slo.ttft_p95: 2000 s; a number without a unit is seconds"
    ]


@pytest.mark.parametrize(
    "slo", ["{ttft_p95: 2000 s}", "{ttft_p95: 60, tpot_p95: 1, e2e_p95: 3600}", "{ttft_p95: 2000 ms}"]
)
def test_a_written_unit_and_short_bounds_are_what_they_are(slo):
    assert told(slo) == []
