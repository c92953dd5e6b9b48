"""What a placement is worth."""

import numpy as np
import pytest

from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.study.experts import EVEN, IN_ORDER, PLACED, study_experts
from sim.yamlfile import parse_yaml

MIXTURE = """\
model: Qwen/Qwen3-30B-A3B
deployment: {gpu: H100-SXM-80GB, parallelism: {dp: 4, ep: 4}}
moe: {popularity: {kind: zipf, exponent: 1.0}, placement: {kind: eplb}, num_redundant_experts: 16}
engine: {max_model_len: 4096}
workload: {arrivals: {kind: offline}, lengths: {kind: fixed, input_tokens: 10, output_tokens: 10}}
"""


@pytest.fixture(scope="module")
def study():
    return study_experts(experiment_of(parse_yaml(MIXTURE, "experiment")))


def test_shares_are_shares_and_every_expert_has_a_slot(study):
    assert study.shares.shape == (48, 128)
    np.testing.assert_allclose(study.shares.sum(axis=1), 1)
    assert study.placed.layout.slots == 144


def test_ranks_are_more_even_as_placed_than_in_order(study):
    placed, in_order = (study.rank_load[name].max(axis=1).mean() for name in (PLACED, IN_ORDER))
    assert 1.0 <= placed < in_order
    np.testing.assert_allclose(study.rank_load[PLACED].mean(axis=1), 1)


def test_large_batches_gain_and_even_loads_are_the_best(study):
    assert study.gain[-1] > 0
    assert (study.iteration_s[EVEN][-3:] < study.iteration_s[IN_ORDER][-3:]).all()
    assert (np.diff(study.iteration_s[PLACED]) > 0).all()


def test_a_dense_model_has_no_experts_to_place():
    text = MIXTURE.replace("Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-8B").replace("moe:", "#")
    with pytest.raises(ConfigError, match="no routed experts"):
        study_experts(experiment_of(parse_yaml(text.replace("dp: 4, ep: 4", "tp: 4"), "experiment")))
