"""What load, placement and exchange of experts cost."""

import pytest

from sim.batch import Batch, Chunk
from sim.errors import UserError
from sim.experiment import experiment_of
from sim.profiles.library import load_all_to_all
from sim.simulate import prepare
from sim.yamlfile import parse_yaml

QWEN = """
model: Qwen/Qwen3-30B-A3B
deployment: {{gpu: {gpu}, parallelism: {{{parallelism}}}}}
engine: {{version: "0.19", max_model_len: 4096{engine}}}
{moe}
workload:
  num_requests: 10
  arrivals: {{kind: offline}}
  lengths: {{kind: fixed, input_tokens: 100, output_tokens: 10}}
"""
DECODES = Batch(decodes=64, decode_context_tokens=64 * 500, sampled=64)
PROMPTS = Batch(chunks=(Chunk(8192, 0),), sampled=1)
SKEWED = "popularity: {kind: lognormal, sigma: 1.0}"


def _setup(moe="", parallelism="tp: 4, ep: 4", engine="", gpu="H100-SXM-80GB"):
    section = f"moe: {{{moe}}}" if moe else ""
    text = QWEN.format(parallelism=parallelism, engine=engine, moe=section, gpu=gpu)
    return prepare(experiment_of(parse_yaml(text, "x.yaml")))


def _seconds(batch, name="experts", **options):
    return _setup(**options).engine.cost.breakdown(batch)[name]


def test_a_skewed_mixture_costs_more_and_a_good_placement_less():
    even, skewed = _seconds(PROMPTS), _seconds(PROMPTS, moe=SKEWED)
    placed = _seconds(PROMPTS, moe=f"{SKEWED}, placement: {{kind: eplb}}, num_redundant_experts: 16")
    assert even < placed < 1.03 * even
    assert 1.05 * even < skewed


def test_few_tokens_read_the_experts_that_they_touch():
    """At the same tokens a skewed mixture touches fewer experts: on one rank, that is all there is to it."""
    few = Batch(decodes=8, decode_context_tokens=8, sampled=8)
    one_rank = {"parallelism": "tp: 1"}
    assert _seconds(few, moe="popularity: {kind: lognormal, sigma: 2}", **one_rank) < _seconds(few, **one_rank)


def test_redundant_experts_take_memory_and_leave_fewer_blocks():
    without, with_them = (_setup(moe=f"num_redundant_experts: {number}").memory for number in (0, 16))
    # 16 of 128 experts more: 48 layers x 3 x 2048 x 768 x 2 bytes each, a quarter of them on each rank.
    expected = 16 / 4 * 48 * 3 * 2048 * 768 * 2
    added = with_them.ranks[0].weights_bytes - without.ranks[0].weights_bytes
    assert added == pytest.approx(expected, rel=0.01)
    assert with_them.max_concurrency < without.max_concurrency


def test_moving_weights_costs_unless_it_is_overlapped():
    moe = f"{SKEWED}, placement: {{kind: eplb}}, drift: {{slow_sigma: 0.8}}, rebalance: {{step_interval: 1000"
    stalls = _setup(moe=f"{moe}, layer_overhead_s: 0.001}}").engine.cost.breakdown(DECODES)
    # At most all 128 experts move once in 1000 iterations: 32 of them to each rank, over less than 450 GB/s.
    all_s = 32 * 48 * 3 * 2048 * 768 * 2 / 450e9 / 1000
    assert 0.5 * all_s < stalls["rebalancing"] - 48 * 0.001 / 1000 < 4 * all_s
    assert "rebalancing" not in _setup(moe=f"{moe}, use_async: true}}").engine.cost.breakdown(DECODES)


def test_a_library_carries_each_token_to_its_experts():
    parallelism = "tp: 1, dp: 8, ep: 8"
    engine = ", all_to_all: {mode: low_latency}"
    seconds = _seconds(DECODES, "expert_exchange", parallelism=parallelism, engine=engine)
    # H100, one node: 48 x (12.0 + 11.4 us + 64 tokens x 8 experts x 7/8 x 2048 x (2 / 0.526 + 2 / 0.476) B / 450 GB/s)
    expected = 48 * (11.95e-6 + 11.36e-6 + 64 * 8 * 7 / 8 * 2048 * (2 / 0.5262 + 2 / 0.4758) / 450e9)
    assert seconds == pytest.approx(expected, rel=1e-3)
    at_limit, beyond = (Batch(decodes=n, decode_context_tokens=n, sampled=n) for n in (256, 257))
    taken = {}
    for mode in ("auto", "low_latency", "high_throughput"):
        cost = _setup(parallelism=parallelism, engine=f", all_to_all: {{mode: {mode}}}").engine.cost
        for batch in (at_limit, beyond):
            taken[mode, batch.decodes] = cost.breakdown(batch)["expert_exchange"]
    assert taken["auto", 256] == taken["low_latency", 256]
    assert taken["auto", 257] == taken["high_throughput", 257]


def test_nodes_are_reached_over_the_network():
    engine = ", all_to_all: {mode: low_latency}"
    one, two = (
        _seconds(DECODES, "expert_exchange", parallelism=f"tp: 1, dp: {ranks}, ep: {ranks}", engine=engine)
        for ranks in (8, 16)
    )
    assert two > 2 * one


def test_a_rack_is_one_domain_and_has_constants_of_its_own():
    """32 GB200 on one NVLink: 64 tokens x 8 experts x 31/32 x 2048 elements of 2 B, no network between trays of 4."""
    low = ", all_to_all: {mode: low_latency}"
    seconds = _seconds(DECODES, "expert_exchange", parallelism="tp: 1, dp: 32, ep: 32", engine=low, gpu="GB200-NVL72")
    own = load_all_to_all("deepep").accelerators["GB200-NVL72"].low_latency[1]
    sent = 64 * 8 * 31 / 32 * 2048 * 2 / 900e9
    each = [phase.launch_s.value + sent / phase.link.value for phase in (own.dispatch, own.combine)]
    assert seconds == pytest.approx(48 * sum(each))


def test_nvlink_kernels_of_tensorrt_llm_have_one_mode():
    parallelism, gpu = "tp: 1, dp: 8, ep: 8", "GB200-NVL72"
    options = {"parallelism": parallelism, "gpu": gpu}
    auto = _seconds(DECODES, "expert_exchange", engine=", all_to_all: {library: trtllm-nvlink}", **options)
    # To 8 (1 - (7/8)^8) ranks of 8: 27.0 + 14.4 us and 64 tokens x 5.25 x 7/8 x 2048 x 2 B / 900 GB/s / 0.455, a layer.
    sent = 64 * 8 * (1 - (7 / 8) ** 8) * 7 / 8 * 2048 * 2 / 900e9
    assert auto == pytest.approx(48 * (26.95e-6 + 14.38e-6 + sent / 0.4547 + sent / 0.4556), rel=1e-3)
    with pytest.raises(UserError, match="trtllm-nvlink has no mode low_latency"):
        _setup(engine=", all_to_all: {library: trtllm-nvlink, mode: low_latency}", **options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"moe": "num_redundant_experts: 2"}, "x.yaml:5: moe: 130 slots do not divide by 4 ranks"),
        ({"moe": "groups: 3"}, "x.yaml:5: moe.groups: 128 experts do not divide by 3 groups"),
        ({"moe": "popularity: {kind: measured, path: none.csv}"}, "none.csv: cannot be read"),
        ({"engine": ", all_to_all: {library: deepeq}"}, "did you mean 'deepep'"),
        ({"parallelism": "tp: 1, dp: 2, pp: 2"}, "dp and pp are not simulated together"),
    ],
)
def test_what_cannot_be(options, reason):
    engine = ", num_gpu_blocks_override: 100" + options.pop("engine", "")
    with pytest.raises(UserError) as caught:
        _setup(engine=engine, **options)
    assert reason in str(caught.value)


def test_a_dense_model_has_no_experts():
    text = QWEN.format(parallelism="tp: 1", engine="", moe="moe: {}", gpu="H100-SXM-80GB")
    text = text.replace("Qwen3-30B-A3B", "Qwen3-8B")
    with pytest.raises(UserError, match="has no routed experts"):
        prepare(experiment_of(parse_yaml(text, "x.yaml")))
