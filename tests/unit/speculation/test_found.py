"""Decodes without a draft compute one token, whatever the cost model, the engine and the ranks."""

import pytest

from sim.experiment import experiment_of
from sim.simulate import simulate
from sim.yamlfile import parse_yaml

DENSE, MIXTURE = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B"
RANKS = "parallelism: {tp: 1, dp: 4, ep: 4}"
LINE = "{kind: affine, base_s: 0.001, per_token_s: 1.0e-4}"
COMBINATIONS = {
    "affine": (DENSE, "", "", LINE),
    "roofline": (DENSE, "", "", "{kind: roofline}"),
    "sequences of their own": (DENSE, "", 'version: "0.6.6"', "{kind: roofline}"),
    "pipeline": (DENSE, "parallelism: {pp: 2}", "", "{kind: roofline}"),
    "ranks": (MIXTURE, RANKS, "", "{kind: roofline}"),
    "library": (MIXTURE, RANKS, "all_to_all: {library: deepep}", "{kind: roofline}"),
    "halves": (MIXTURE, RANKS, "all_to_all: {library: deepep}, enable_dbo: true", "{kind: roofline}"),
}


def served(combination, found, *, stride="on"):
    """The summary with drafts of eight tokens, none of which is accepted; without drafts if *found* is None."""
    model, placed, flags, cost = COMBINATIONS[combination]
    drafts = f"speculative: {{kind: ngram, num_speculative_tokens: 8, acceptance: 0, found: {found}}}"
    users = 256 if model == MIXTURE else 64
    text = f"""
model: {model}
deployment: {{gpu: H100-SXM-80GB, {placed}}}
engine: {{{", ".join(each for each in (flags, drafts if found else "") if each)}}}
cost_model: {cost}
workload:
  arrivals: {{kind: offline}}
  lengths: {{kind: fixed, input_tokens: 128, output_tokens: 24}}
  num_requests: {users}
stride: {stride}
"""
    return simulate(experiment_of(parse_yaml(text, "found.yaml"))).summary.as_dict()


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_drafts_that_are_hardly_ever_found_cost_nothing(combination):
    none, seldom, half, always = (served(combination, found)["mean_tpot_ms"] for found in (None, 0.001, 0.5, 1))
    assert seldom == pytest.approx(none, rel=0.02)
    assert none < half < always
    assert always > 1.1 * none


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_strides_and_single_iterations_agree(combination):
    on, off = (served(combination, 0.3, stride=stride) for stride in ("on", "off"))
    for key in ("mean_ttft_ms", "mean_tpot_ms", "p99_itl_ms", "duration"):
        assert on[key] == pytest.approx(off[key], rel=1e-9)


def test_a_line_counts_the_tokens_that_are_computed():
    """Two requests that decode: 1 ms and, for each, 1 + 8 / 4 tokens of 0.1 ms."""
    assert served("affine", 0.25)["mean_itl_ms"] == pytest.approx(1 + 64 * 3 * 0.1)
