"""An engine profile of one's own whose options no scheduler takes is refused in one line."""

import pytest

from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.profiles.library import find
from sim.simulate import prepare
from sim.yamlfile import parse_yaml

TEXT = """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB}
workload: {arrivals: {kind: offline}, lengths: {kind: fixed, input_tokens: 10, output_tokens: 10}}
"""


def test_options_that_a_scheduler_does_not_take(tmp_path):
    profile = tmp_path / "profiles" / "engines" / "vllm.yaml"
    profile.parent.mkdir(parents=True)
    own = find("engines", "vllm").read_text(encoding="utf-8")
    assert "scheduler_options: {scheduler_reserve_full_isl: true}" in own
    wrong = "scheduler_options: {scheduler_reserve_full_isl: perhaps}"
    profile.write_text(own.replace("scheduler_options: {scheduler_reserve_full_isl: true}", wrong), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"scheduler_options.scheduler_reserve_full_isl that"):
        prepare(experiment_of(parse_yaml(TEXT, str(tmp_path / "x.yaml"))))
