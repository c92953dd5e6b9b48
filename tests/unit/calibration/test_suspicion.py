"""Each check on a run that has its fault, worked by hand, and on one that has not."""

import numpy as np
import pytest

from calibration.importers import import_file
from calibration.runs import Requests, Run
from calibration.suspicion import suspicions
from tests.conftest import SHARED

# 4 requests/s x 2 s = 8 in flight; TPOT (2 - 0.02) / 99 = 20 ms.
SOUND = {
    "load": "concurrency",
    "load_value": 8.0,
    "req_s": 4.0,
    "num_requests": 400,
    "completed": 400,
    "failed": 0,
    "input_len": 1000.0,
    "output_len": 100.0,
    "e2e_mean_s": 2.0,
    "tpot_mean_s": 0.02,
    "itl_mean_s": 0.02,
    "ttft_mean_s": 0.02,
    "ttft_p50_s": 0.018,
}
OPEN = SOUND | {"load": "rate", "load_value": 4.0}


def flags(**changes):
    return {flag.check: flag for flag in suspicions(Run(**(SOUND | changes)))}


def test_a_sound_run_has_none():
    assert flags() == {}
    assert flags(**OPEN) == {}
    assert suspicions(Run()) == []


def test_all_failed_is_the_only_flag():
    found = flags(completed=0, failed=400)
    assert found.keys() == {"failures"}
    assert "all 400 requests failed" in found["failures"].text


def test_some_failed():
    assert "100 of 400 requests failed (25%)" in flags(completed=300, failed=100)["failures"].text
    assert "failures" not in flags(completed=397, failed=3)


@pytest.mark.parametrize(("load", "why"), [(16.0, "never held its load"), (4.0, "not what it is called")])
def test_littles_law(load, why):
    text = flags(load_value=load)["littles_law"].text
    assert f"4 requests/s x 2 s = 8 in flight, where the load was {load:g}" in text
    assert why in text


def test_littles_law_counts_requests_where_rates_are_rounded():
    assert "littles_law" in flags(req_s=0.01)
    assert "littles_law" not in flags(req_s=0.01, duration_s=100.0)


@pytest.mark.parametrize(("tpot_s", "why"), [(0.01, "two chunks a token"), (0.04, "another definition")])
def test_tpot(tpot_s, why):
    text = flags(tpot_mean_s=tpot_s, itl_mean_s=None)["tpot"].text
    assert "(E2E - TTFT) / (tokens - 1) is 20 ms" in text
    assert why in text


def test_few_requests():
    assert "39 requests are fewer than 5 x 8" in flags(num_requests=39, completed=39)["few_requests"].text
    assert "few_requests" not in flags(num_requests=40, completed=40)
    assert "send 40 or more" in flags(**OPEN | {"num_requests": 39, "completed": 39})["few_requests"].text


def test_warm_up_by_mean_and_median():
    assert "mean TTFT is 37 ms, the median 18 ms" in flags(ttft_mean_s=0.037)["warm_up"].text


def test_warm_up_by_the_first_requests():
    ttft_s = np.r_[np.full(8, 1.0), np.full(392, 0.02)]
    text = flags(requests=Requests(ttft_s=ttft_s))["warm_up"].text
    assert "the first 8 requests had a TTFT of 1 s, the others 20 ms" in text
    assert "warm_up" not in flags(requests=Requests(ttft_s=ttft_s[8:]))


def test_client_cap():
    met = flags(**OPEN | {"inflight_cap": 10})["client_cap"]
    assert met.severity == "warning"
    assert "8 were in flight, so it was met" in met.text
    assert flags(**OPEN | {"inflight_cap": 100})["client_cap"].severity == "note"
    assert "client_cap" in flags(rate_cap_rps=5)


def test_offered_rate():
    text = flags(**OPEN | {"load_value": 8.0, "duration_s": 100.0})["offered_rate"].text
    assert "4 of 8 requests/s were completed (50 s of arrivals, 100 s in all)" in text


def test_speculation():
    assert flags(mode="agg+spec")["speculation"].severity == "warning"
    found = flags(itl_mean_s=0.03)["speculation"]
    assert found.severity == "note"
    assert "1.5 tokens a chunk" in found.text


def test_prefix_hits_that_the_file_states():
    assert "99% of the prompt tokens" in flags(prefix_hit_share=0.99)["prefix_hits"].text
    assert "prefix_hits" not in flags(prefix_hit_share=0.0)


H100 = {"model": "meta-llama/Llama-3.1-8B", "gpu": "H100-SXM-80GB", "n_gpus": 1, "weight_dtype": "bf16"}


def test_prefix_hits_that_the_peak_rate_shows():
    # 2 x 6.98e9 weights x 8,000 tokens = 1.1e14 FLOP: 28 ms at 4e15 FLOP/s, more at any real dense peak.
    assert "the prompts were cached" in flags(**H100, input_len=8000.0, ttft_p50_s=0.018)["prefix_hits"].text
    assert "prefix_hits" not in flags(**H100, input_len=8000.0, ttft_p50_s=0.5)


def test_physics():
    # 8.03e9 weights less 0.53e9 of the embeddings, 2 bytes each, at 3.35 TB/s: 4.48 ms.
    fast = {"tpot_mean_s": 0.004, "itl_mean_s": 0.004, "e2e_mean_s": 0.416, "ttft_mean_s": 0.02, "req_s": 19.2}
    text = flags(**H100, **fast)["physics"].text
    assert "TPOT is 4 ms, but reading the weights takes 4.48 ms on 1 x H100-SXM-80GB" in text
    assert "physics" not in flags(**H100 | fast | {"n_gpus": 2})
    assert "physics" not in flags(**H100 | fast | {"weight_dtype": "fp8"})
    assert "physics" not in flags(**H100 | fast | {"weight_dtype": "something new"})
    assert "physics" not in flags(**fast, model="no such model", gpu="H100-SXM-80GB", n_gpus=1)


def test_a_model_named_like_a_path_opens_nothing(tmp_path):
    (tmp_path / "config.json").write_text("{broken")
    assert flags(model=str(tmp_path), gpu="H100-SXM-80GB", n_gpus=1) == {}
    assert flags(model=f"x{tmp_path}/config.json", gpu="../secret.yaml", n_gpus=1) == {}


PUBLISHED = {
    "vllm_bench_serve_v0251_all_failed.json": {"failures"},
    "inference_perf_stage3_lifecycle.json": {"tpot"},
    "vllm_gptoss120b_h200_c64_gt_ttfts.json": {"warm_up"},
    "vllm_bench_serve_v0251.json": {"few_requests", "warm_up"},
    "vllm_old_detailed_l40s_8b_fp8_c32.json": {"client_cap", "few_requests", "offered_rate"},
    "inferencex_bench_serving_gptoss120b_h200_tp4_c64.json": {"speculation"},
    "llmperf_summary_anyscale_70b.json": {"littles_law"},
    "vllm_gptoss120b_h200_c256.json": set(),
    "aiperf_profile_export_qwen_c1.json": set(),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_runs(name):
    (run,) = import_file(SHARED / "data" / "bench_outputs" / name)
    assert {flag.check for flag in suspicions(run)} == PUBLISHED[name]
