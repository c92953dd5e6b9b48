"""Pools of unlike replicas: what each is made of, who serves whom, and what is said when they cannot be used."""

import pytest

from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.report.json import to_json
from sim.simulate import simulate
from sim.simulate.inputs import input_files
from sim.simulate.pools import experiments_of, ready_pools
from sim.yamlfile import parse_yaml

AFFINE = "cost_model: {kind: affine, base_s: 0.01, per_token_s: 0, per_context_token_s: 0, per_seq_s: 0}\n"
HEAD = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB, replicas: 3}
engine: {max_model_len: 4096, num_gpu_blocks_override: 1000}
workload:
  arrivals: {kind: poisson, rate: 20}
  lengths: {kind: fixed, input_tokens: 64, output_tokens: 16}
  num_requests: 400
"""
POOLS = "pools:\n  - {name: new, replicas: 2}\n  - {gpu: L40S, engine: {num_gpu_blocks_override: 500}}\n"


def experiment(text):
    return experiment_of(parse_yaml(text, "fleet.yaml"))


def test_a_pool_is_the_deployment_but_for_what_it_writes():
    (first, new), (second, old) = experiments_of(experiment(HEAD + POOLS))
    assert (first, second) == ("new", "pool1")
    assert (new.deployment.gpu, new.deployment.replicas) == ("H100-SXM-80GB", 2)
    assert (old.deployment.gpu, old.deployment.replicas) == ("L40S", 3)
    assert (old.engine.max_model_len, old.engine.num_gpu_blocks_override) == (4096, 500)


def test_replicas_are_numbered_on_from_pool_to_pool():
    pools = ready_pools(experiment(HEAD + POOLS))
    assert [(pool.first, pool.replicas) for pool in pools] == [(0, 2), (2, 3)]


def test_equal_pools_are_one_pool():
    whole = simulate(experiment(HEAD + AFFINE)).summary.as_dict()
    parts = simulate(experiment(HEAD + AFFINE + "pools: [{replicas: 1}, {replicas: 2}]\n")).summary.as_dict()
    for result in (whole, parts):
        del result["wall_s"]
    assert sum(pool["completed"] for pool in parts.pop("pools")) == 400
    assert to_json(parts) == to_json(whole)


def test_each_model_gets_its_share_of_the_requests():
    pools = "pools:\n  - {share: 0.75}\n  - {model: Qwen/Qwen3-8B, share: 0.25}\n"
    first, second = simulate(experiment(HEAD + AFFINE + pools)).summary.pools
    assert first.completed + second.completed == 400
    assert abs(second.completed - 100) < 2.6 * (400 * 0.75 * 0.25) ** 0.5  # 99 % of a binomial


def test_a_run_depends_on_the_profiles_of_every_pool():
    roles = input_files(experiment(HEAD + POOLS))
    assert roles["new: hardware"].stem == "H100-SXM-80GB"
    assert roles["pool1: hardware"].stem == "L40S"


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        ("pools:\n  - {}\n  - {gpu: L40Z}\n", "fleet.yaml:10: deployment.gpu: no profile 'L40Z' in hardware"),
        ("pools:\n  - {name: a}\n  - {name: a}\n", "fleet.yaml:10: pools.1.name: there is another pool 'a'"),
        ("pools:\n  - {engine: {block_size: 0}}\n", "fleet.yaml:9: pools.0.engine.block_size:"),
        ("pools:\n  - {}\n  - {share: 0.5}\n", "fleet.yaml:10: pools.1.share: shares are of models"),
        ("pools:\n  - {}\n  - {model: Qwen/Qwen3-8B}\n", "the shares of 2 models must be above 0 and sum to 1"),
    ],
)
def test_what_cannot_be_used_names_its_line(pools, message):
    with pytest.raises(ConfigError, match=".") as problem:
        ready_pools(experiment(HEAD + pools))
    assert message in str(problem.value)
