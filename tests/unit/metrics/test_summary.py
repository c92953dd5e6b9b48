import math
import subprocess
import sys

import pytest
from handmade import NEVER, context_of, requests_of, strides_of, two_answers

from sim.metrics.power import GpuPower
from sim.metrics.summary import summarise
from sim.profiles.prices import GpuPrice
from sim.request import Status
from sim.slo import SLO

STATISTICS = ("mean", "median", "p90", "p95", "p99", "std")
KEYS = [
    *("completed", "failed", "rejected", "duration", "total_input_tokens", "total_output_tokens"),
    *("request_throughput", "request_goodput", "output_throughput", "total_token_throughput"),
    *(f"{prefix}_{name}_ms" for name in ("ttft", "tpot", "itl", "e2el") for prefix in STATISTICS),
    *("max_output_tokens_per_s", "max_concurrent_requests", "preemptions", "prefix_hit_rate"),
    *("kv_utilization_mean", "kv_utilization_peak", "kv_waste"),
    *("spec_decode_acceptance_length", "spec_decode_acceptance_rate"),
    *("running_mean", "output_tok_s_per_gpu", "total_tok_s_per_gpu"),
    *("cost_usd_per_mtok_output", "energy_j_per_output_tok", "gpu_power_w", "facility_power_w", "price"),
    *("slo", "binding_limit", "iteration_time", "steady_state", "warm_up_s"),
    *("intervals", "warnings", "engine_iterations", "iterations_in_strides", "single_steps", "simulated_s", "wall_s"),
]


def result_of(requests, strides, **changes):
    return summarise(requests, strides, context_of(**changes)).as_dict()


def test_every_metric_of_two_answers():
    slo = SLO.model_validate({"ttft_p95": "600 ms"})
    money = {"gpu_price": GpuPrice(3.0), "gpu_power": GpuPower(idle_w=100.0, busy_w=700.0, facility_factor=1.5)}
    result = result_of(*two_answers(), slo=slo, **money, wall_s=0.5, warnings=("odd",))
    seconds = 2.625 - 1.0
    assert {key: result[key] for key in ("completed", "failed", "rejected", "engine_iterations", "preemptions")} == {
        "completed": 2,
        "failed": 0,
        "rejected": 1,
        "engine_iterations": 5,
        "preemptions": 1,
    }
    expected = {
        "duration": seconds,
        "simulated_s": 2.625,
        "wall_s": 0.5,
        "total_input_tokens": 150,
        "total_output_tokens": 7,
        "request_throughput": 2 / seconds,
        "request_goodput": 1 / seconds,  # TTFT is 0.5 and 0.75 s
        "output_throughput": 7 / seconds,
        "total_token_throughput": 157 / seconds,
        "output_tok_s_per_gpu": 3.5 / seconds,
        "total_tok_s_per_gpu": 78.5 / seconds,
        "mean_ttft_ms": 625,
        "median_ttft_ms": 625,
        "p90_ttft_ms": 725,
        "p99_ttft_ms": 747.5,
        "std_ttft_ms": 125,
        "mean_tpot_ms": 1e3 * (0.75 / 2 + 0.625 / 3) / 2,
        "mean_itl_ms": 275,  # gaps 0.5 0.25 0.25 0.125 0.25 s
        "median_itl_ms": 250,
        "std_itl_ms": 1e3 * math.sqrt((0.225**2 + 3 * 0.025**2 + 0.15**2) / 5),
        "mean_e2el_ms": 1312.5,
        "p99_e2el_ms": 1373.75,
        "max_output_tokens_per_s": 6,
        "max_concurrent_requests": 2,
        "prefix_hit_rate": 32 / 200,  # the preempted request was looked up twice
        "kv_utilization_mean": (7 * 0.5 + 11 * 0.5 + 11 * 0.25 + 4 * 0.375) / (20 * seconds),
        "kv_utilization_peak": 11 / 20,
        "running_mean": (1 * 0.5 + 2 * 0.75 + 1 * 0.375) / seconds,
        "cost_usd_per_mtok_output": 3.0 * 2 * seconds / 3600 / 7e-6,
        "energy_j_per_output_tok": 2 * (700 * 1.625) / 7,
        "gpu_power_w": 700,  # it is never idle
        "facility_power_w": 2 * 700 * 1.5,
    }
    assert {key: result[key] for key in expected} == pytest.approx(expected)
    assert result["slo"]["ttft_p95"] == pytest.approx(
        {"bound_ms": 600, "value_ms": 737.5, "share_within": 0.5, "met": False}
    )
    assert (result["steady_state"], result["intervals"]) == ("too short", {})
    assert [warning.split(":")[0] for warning in result["warnings"]] == ["odd", "1 of 3 requests rejected", "Too short"]


def test_keys_and_their_order_are_the_contract():
    assert list(result_of(*two_answers())) == KEYS


def test_blocks_fill_up_during_a_stride():
    # 32 decodes that emit 31 tokens after the first take 62 blocks of 16, one after the other
    strides = strides_of({"first_s": 1.0, "iterations": 32, "decodes": 32, "kv_blocks": 100})
    requests = requests_of((0.0, 0.0, 1.0, 32.0, 32))
    assert result_of(requests, strides, kv_blocks=200, block_size=16)["kv_utilization_mean"] == (100 - 62 / 2) / 200
    assert result_of(requests, strides, kv_blocks=200)["kv_utilization_mean"] == 0.5


def test_what_is_unknown_is_none():
    result = result_of(*two_answers())
    for key in ("request_goodput", "cost_usd_per_mtok_output", "energy_j_per_output_tok", "facility_power_w", "price"):
        assert result[key] is None


def test_a_run_in_which_nothing_was_served():
    requests = requests_of((1.0, NEVER, NEVER, NEVER, 4, {"status": Status.REJECTED, "reasons": "too long"}))
    result = result_of(requests, strides_of(), gpu_price=GpuPrice(1.0))
    assert (result["completed"], result["rejected"], result["total_output_tokens"]) == (0, 1, 0)
    assert result["cost_usd_per_mtok_output"] is None
    assert math.isnan(result["mean_ttft_ms"])
    assert "1 of 1 requests rejected: too long" in result["warnings"]


def test_one_token_answers_have_no_tpot():
    result = result_of(requests_of((0.0, 0.0, 1.0, 1.0, 1)), strides_of({"first_s": 1.0, "chunks": 1, "running": 1}))
    assert math.isnan(result["mean_tpot_ms"])
    assert result["mean_e2el_ms"] == 1000


def test_unfinished_and_failed_requests_keep_the_count_whole():
    requests = requests_of(
        (0.0, 0.0, 1.0, 1.5, 2),
        (0.0, 0.0, 1.0, 1.25, 9, {"status": Status.FAILED, "emitted_tokens": 2, "reasons": "aborted"}),
        (0.0, NEVER, NEVER, NEVER, 9, {"status": Status.WAITING, "emitted_tokens": 0}),
    )
    result = result_of(requests, strides_of(odd_gaps=[(0.5, 1), (0.25, 1)]))
    assert (result["completed"], result["failed"], result["total_output_tokens"]) == (1, 2, 2)
    assert result["warnings"][0] == "1 of 3 requests failed: aborted"


def test_missing_gaps_are_told():
    requests, strides = two_answers()
    strides.steady_gaps[1] = 0
    assert any("ITL is off" in warning for warning in result_of(requests, strides)["warnings"])


def test_it_needs_numpy_and_pydantic_only():
    heavy = "pandas scipy rich pyarrow plotly streamlit"
    code = f"import sys, sim.metrics.summary; print([name for name in {heavy.split()} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
