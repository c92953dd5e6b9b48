"""Effects that others measured, in simulation: the figures of docs/claims.md, and whether their sign is right."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from conftest import ROOT

from sim.batch import Batch
from sim.experiment import load_experiment
from sim.profiles.library import load_hardware, load_model
from sim.profiles.quantization import Quantization
from sim.simulate import prepare, simulate

FOLDER = ROOT / "experiments" / "claims"
DOCUMENT = (ROOT / "docs" / "claims.md").read_text()


def runs(name):
    """Simulate every point of a claim's sweep, in order; without a sweep, the experiment itself."""
    path = FOLDER / f"{name}.yaml"
    points = load_experiment(path).sweep
    settings = list(points.settings()) if points else [{}]
    return [
        simulate(load_experiment(path, [f"{at}={json.dumps(value)}" for at, value in point.items()]))
        for point in settings
    ]


def summaries(name):
    return [run.summary.as_dict() for run in runs(name)]


def ratio(name, key):
    """Return the last point's value over the first one's."""
    values = [summary[key] for summary in summaries(name)]
    return values[-1] / values[0]


def together(run):
    """Return how many run at once, on average over the middle half of the busy time."""
    ends_s = np.cumsum(run.strides.duration_s)
    middle = (ends_s > ends_s[-1] / 4) & (ends_s < ends_s[-1] * 3 / 4)
    return np.average(run.strides.running[middle], weights=run.strides.duration_s[middle])


def test_every_claim_has_its_line():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(re.findall(r"claims/(\w+)\.yaml", DOCUMENT))


def test_reserved_room_is_mostly_wasted():
    reserved, paged = runs("paged_kv")
    assert 0.6 < reserved.summary.kv.waste < 0.8
    assert paged.summary.kv.waste < 0.04
    assert together(paged) / together(reserved) > 3


def test_continuous_batching_beats_static_batches():
    assert 4 < ratio("static_batching", "output_throughput") < 8


def test_a_watermark_prevents_preemptions():
    none, two, five, ten, fifteen = summaries("watermark")
    preemptions = [point["preemptions"] for point in (none, two, five)]
    assert preemptions == pytest.approx([1065, 400, 187], rel=0.1)
    assert all(100 < point["preemptions"] < preemptions[2] for point in (ten, fifteen))
    assert five["output_throughput"] / none["output_throughput"] == pytest.approx(12167 / 11582, rel=0.02)
    assert five["output_throughput"] > ten["output_throughput"] > fifteen["output_throughput"]
    assert five["p99_itl_ms"] < 0.5 * none["p99_itl_ms"]


def test_larger_chunks_trade_gaps_for_the_first_token():
    points = summaries("chunk_size")
    first = [point["mean_ttft_ms"] for point in points]
    gaps = [point["p99_itl_ms"] for point in points]
    assert all(wider > 0.999 * gap for gap, wider in pairwise(gaps)), "they rise until chunks hold whole prompts"
    assert first[0] - first[1] > 2 * (first[1] - min(first)) > 0, "the knee: the first doubling gains most"
    assert min(first) == pytest.approx(first[-1], rel=0.1)


def test_engines_at_100_users():
    vllm, *others, llama_cpp, ollama = [point["output_throughput"] for point in summaries("engines_at_100")]
    assert others == pytest.approx([vllm] * 3, rel=0.25)
    assert 10_000 < vllm < 16_000
    assert 10 < vllm / llama_cpp < 40, "published 35 times"
    assert llama_cpp > ollama


def test_tgi_gives_what_was_measured_and_vllm_what_the_memory_allows():
    vllm, tgi = runs("vllm_tgi")
    assert tgi.summary.as_dict()["total_token_throughput"] == pytest.approx(4156, rel=0.1)
    assert vllm.summary.as_dict()["total_token_throughput"] == pytest.approx(4156, rel=0.1), "published 15,243"
    a100 = load_hardware("A100-SXM-80GB")
    model = load_model("meta-llama/Llama-2-7b-hf")
    held = 100 * (161 + 338 / 2) * model.kv_bytes_per_token("fp16")
    bound = 100 / ((model.weight_bytes(Quantization()) + held) / a100.memory_bytes_per_s)
    assert bound < 7_500, "output tokens a second, if nothing but reading took time"


def test_llama_cpp_alone():
    (point,) = summaries("llama_cpp_alone")
    assert point["output_throughput"] == pytest.approx(120, rel=0.2)


def test_fp8_weights():
    assert 1.2 < ratio("fp8_weights", "output_throughput") < 1.6
    assert 0.65 < ratio("fp8_weights", "mean_e2el_ms") < 0.85


def test_fp8_kv_cache():
    bf16, fp8 = runs("fp8_kv")
    assert fp8.setup.engine.num_blocks == pytest.approx(2 * bf16.setup.engine.num_blocks, rel=0.01)
    assert fp8.summary.served.output_tok_s > bf16.summary.served.output_tok_s


def test_a_warm_replica_is_much_cheaper():
    cold, warm = runs("warm_replica")
    before_ms = 1e3 * cold.setup.engine.cost.admission_delay_s(32000)  # HTTP and tokenisation, the same for both
    cold_ms, warm_ms = (run.summary.as_dict()["median_ttft_ms"] for run in (cold, warm))
    assert cold_ms > 3 * warm_ms
    assert 5 < (cold_ms - before_ms) / (warm_ms - before_ms) < 40


def test_more_replicas_serve_more_and_fewer_hold_longer_contexts():
    two, four, eight = runs("tp_choice")
    assert two.summary.served.requests_per_s > 1.1 * eight.summary.served.requests_per_s
    assert four.summary.served.requests_per_s > 1.1 * eight.summary.served.requests_per_s
    assert eight.setup.memory.max_concurrency > 2 * four.setup.memory.max_concurrency


def test_room_for_keys_and_values_decides_offline():
    h100, h200, pair = [point["output_throughput"] for point in summaries("h200_for_kv")]
    assert 3.5 < h200 / h100 < 5.5
    assert 1.2 < pair / h200 < 1.8


def test_a_pipeline_beats_tensor_parallelism_over_pcie():
    tp8, pp2, pp4 = [point["output_throughput"] for point in summaries("pp_on_pcie")]
    assert pp4 > 1.1 * pp2 > 1.1 * tp8


def test_four_bits_help_small_batches_only():
    points = [point["output_throughput"] for point in summaries("precisions")]
    alone, full = points[:3], points[6:]
    assert alone == sorted(alone), "bf16, fp8, int4"
    assert full[1] > full[2] > full[0]


def test_an_h200_leads_by_less_than_its_bandwidth():
    points = [point["output_throughput"] for point in summaries("h100_h200")]
    leads = [h200 / h100 for h100, h200 in zip(points[::2], points[1::2], strict=True)]
    assert all(1.05 < lead < 1.43 for lead in leads)
    assert leads[-1] > leads[2], "the H100's memory is full"


def test_drafts_help_few_users_more_than_many():
    """Measured: 1.27, 1.15 and 1.02 times for 1, 16 and 64 users, and 5.52, 22.6 and 61.9 ms a chunk.

    That of one user comes out an eighth short.
    """
    points = summaries("eagle")
    tpot = [point["mean_tpot_ms"] for point in points]
    gain = [without / drafts for without, drafts in zip(tpot[::2], tpot[1::2], strict=True)]
    assert gain[0] == pytest.approx(1.27, rel=0.05)
    assert gain[1] == pytest.approx(1.15, rel=0.05)
    assert 1 < gain[2] < 1.2
    chunk_ms = [point["mean_itl_ms"] for point in points[1::2]]
    assert chunk_ms[1:] == pytest.approx([22.6, 61.9], rel=0.1)
    assert chunk_ms[0] == pytest.approx(4.87, rel=0.01), "published 5.52"


def test_a_trained_layer_drafts_best_at_low_rates():
    """Published: 1.63, 1.26 and 1.01 times; five per cent more at low rates, and less than it is here at high ones."""
    tpot = [point["median_tpot_ms"] for point in summaries("mtp")]
    gain = [without / drafts for without, drafts in zip(tpot[::2], tpot[1::2], strict=True)]
    assert gain[0] == pytest.approx(1.55, rel=0.02), "published 1.63"
    assert 1 < gain[2] < gain[1] < gain[0]
    assert gain[2] < 1.35, "published 1.01"


def test_drafts_from_the_prompt_help_few_users():
    """Published: 1.35 and 1.95 times with few users, and 5 % less than 37.3 requests/s where the machine is full.

    How often one is found (`found`) was so chosen that few users gain as much, so that these gains are no test of it.
    """
    few, some, many, full, full_drafts = summaries("ngram")
    gains = [point["output_throughput"] / few["output_throughput"] for point in (some, many)]
    assert gains == pytest.approx([1.35, 1.95], rel=0.02)
    assert full["request_throughput"] == pytest.approx(37.3, rel=0.1)
    assert 0.95 < full_drafts["request_throughput"] / full["request_throughput"] < 1.05


def test_swapping_is_about_as_fast_as_computing_again():
    points = summaries("swap")
    assert points[-1]["preemptions"] > 0
    for again, swapped in zip(points[::2], points[1::2], strict=True):
        assert 0.97 < again["mean_tpot_ms"] / swapped["mean_tpot_ms"] < 1.2


def test_decodes_beyond_the_largest_graph_wait_for_the_host():
    eager, captured = (point["median_tpot_ms"] for point in summaries("graphs"))
    assert 1.7 < eager / captured < 3, "published 2.1"


def test_loading_blocks_is_faster_than_computing_them():
    points = runs("kv_offload")
    before_ms = 1e3 * points[0].setup.engine.cost.admission_delay_s(30100)
    computed, memory, disk = (run.summary.as_dict()["median_ttft_ms"] - before_ms for run in points)
    assert 2 < computed / memory < 22
    assert memory < disk < computed


def test_the_first_token_of_a_queueing_engine_waits_for_the_others():
    points = summaries("queueing")
    first = [point["mean_ttft_ms"] for point in points]
    assert first[-1] > 100 * first[0]
    assert first[5] / first[4] == pytest.approx(2, rel=0.1)
    assert points[-1]["output_throughput"] == pytest.approx(points[1]["output_throughput"], rel=0.01)


def test_long_prompts_want_more_prefill_replicas_at_equal_gpus():
    best = {}
    for name in ("pd_ratio_prompts", "pd_ratio_answers"):
        points = summaries(name)
        assert {sum(pool["gpus"] for pool in point["pools"]) for point in points} == {8}
        assert all(point["kv_transfer_gb"] > 0 for point in points)
        rates = [point["output_tok_s_per_gpu"] for point in points]
        top = rates.index(max(rates))
        assert 0 < top < len(rates) - 1, "neither end is best"
        best[name] = points[top]["pools"][0]["replicas"]
    assert best == {"pd_ratio_prompts": 3, "pd_ratio_answers": 2}


def test_decode_replicas_behind_a_slow_network_change_nothing():
    rates = [point["output_throughput"] for point in summaries("kv_over_ethernet")]
    assert max(rates) == pytest.approx(min(rates), rel=0.001)
    assert rates[-1] == pytest.approx(661, rel=0.1)


def test_a_prefill_replica_saturates_and_more_do_not_help_a_request_alone():
    alone, alone_beside_others, *loaded, double = summaries("prefill_replicas")
    assert alone["median_ttft_ms"] == pytest.approx(alone_beside_others["median_ttft_ms"], rel=1e-9)
    assert loaded[-1]["request_throughput"] == pytest.approx(loaded[-2]["request_throughput"], rel=0.01)
    assert loaded[-1]["request_throughput"] == pytest.approx(4.5, rel=0.15)
    assert loaded[-1]["median_ttft_ms"] > 10 * loaded[0]["median_ttft_ms"] > 10 * double["median_ttft_ms"]


def test_routing_by_prefixes_loses_where_all_prompts_share_the_same_quarter():
    turns, default, all_on_one = summaries("cache_aware_loses")
    assert turns["mean_ttft_ms"] == pytest.approx(627, rel=0.25)
    assert default["mean_ttft_ms"] > 1.1 * turns["mean_ttft_ms"]
    assert all_on_one["mean_ttft_ms"] > 2.5 * turns["mean_ttft_ms"], "published 2.6 times"
    assert all_on_one["prefix_hit_rate"] == pytest.approx(turns["prefix_hit_rate"], abs=0.01), "nothing is gained"


def test_routing_by_prefixes_wins_where_prefixes_are_long_and_many():
    turns, affinity = summaries("cache_aware_wins")
    assert affinity["mean_ttft_ms"] < turns["mean_ttft_ms"] / 2
    assert affinity["total_token_throughput"] > 1.2 * turns["total_token_throughput"], "published 1.9 times"
    assert affinity["prefix_hit_rate"] > turns["prefix_hit_rate"] + 0.3


def test_a_prefix_scorer_keeps_more_contexts_than_one_replica_holds():
    blind, by_load, by_prefix, by_cost = summaries("prefix_scorer")
    assert 30_000 < blind["mean_ttft_ms"] < 60_000, "published 45 s"
    assert by_load["mean_ttft_ms"] == pytest.approx(blind["mean_ttft_ms"], rel=0.2), "load alone does not help"
    assert by_prefix["mean_ttft_ms"] < blind["mean_ttft_ms"] / 3
    assert by_prefix["output_throughput"] > 1.4 * blind["output_throughput"], "published 1.6 times"
    assert by_cost["output_throughput"] > 1.4 * blind["output_throughput"]


def test_experts_placed_by_load_serve_more():
    contiguous, placed, redundant = (run["total_token_throughput"] for run in summaries("redundant_experts"))
    assert 1.1 < placed / contiguous < 1.25, "published 1.167"
    assert 1.01 < redundant / placed < 1.1, "published 1.066"


def test_outlines_compiles_a_grammar_for_long():
    xgrammar, outlines, *typical = summaries("structured_compile")
    assert xgrammar["median_ttft_ms"] == pytest.approx(4550, rel=0.2)
    assert outlines["median_ttft_ms"] == pytest.approx(38_500, rel=0.1)
    assert 0.5 < typical[1]["mean_tpot_ms"] - typical[0]["mean_tpot_ms"] < 2, "published 1.1 ms"


def test_masks_beside_the_gpu_cost_nothing():
    before, after, _ = (point["output_throughput"] for point in summaries("structured_overlap"))
    assert 1.2 < after / before < 1.5, "published 1.33"


def test_overlapping_halves_pay_from_some_hundred_sequences_on():
    """SGLang, DeepSeek-V3 on 72 H100: -27 % with 32 sequences a GPU, +25.5 % with 256, turning between 64 and 128."""
    path = FOLDER / "two_batch_overlap.yaml"
    flags = ("engine.enable_two_batch_overlap=false", "engine.enable_two_batch_overlap=true")
    off, on = (prepare(load_experiment(path, [flag])) for flag in flags)
    gains = []
    for number in (32, 64, 128, 256):
        batch = Batch(decodes=number, decode_context_tokens=number * 2050, sampled=number)
        gains.append(off.engine.cost.pace(batch).first_s / on.engine.cost.pace(batch).first_s - 1)
    assert gains[0] == pytest.approx(-0.33, abs=0.03)  # published -0.27
    assert gains[1] < 0 < gains[2] < gains[3]
    assert gains[3] == pytest.approx(0.255, abs=0.05)  # what `SLOWED` was fitted to
