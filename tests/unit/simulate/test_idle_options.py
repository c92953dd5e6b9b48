"""Options of the fleet that would do nothing beside others are refused."""

import pytest

from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.yamlfile import parse_yaml

HEAD = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
workload: {arrivals: {kind: poisson, rate: 1}, lengths: {kind: preset, name: chat}, num_requests: 10}
"""


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("disaggregation: {link: pcie, bytes_per_s: 1 GB/s}", "write one of them"),
        ("autoscaler: {kind: queue_depth, target: 5, max_replicas: 2, idle_s: 60}", "idle_s counts with scale_to_zero"),
        ("lifecycle: {cold_start_s: 30, warm_up_s: 5}", "so that warm_up_s would do nothing"),
    ],
)
def test_an_option_without_effect_names_its_line(section, message):
    with pytest.raises(ConfigError, match=message) as problem:
        experiment_of(parse_yaml(HEAD + section + "\n", "fleet.yaml"))
    assert str(problem.value).startswith("fleet.yaml:4: ")
