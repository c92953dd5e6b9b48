"""Runs whose very requests are replayed, where their file lies with the cases."""

from dataclasses import replace

import pytest

from calibration.cases.serving import ServingCase
from calibration.experiment.of_case import experiment_of_case
from calibration.fitting.points import points_of
from sim.workload.arrivals.trace import TraceArrivals

ROW = {
    "case_id": "run-residency/agg_2rps/vanilla",
    "engine": "vllm",
    "engine_version": "0.23.0",
    "gpu": "H100-80GB-SXM",
    "n_gpus": "1",
    "tp": "1",
    "mode": "agg",
    "model": "Qwen/Qwen3-14B",
    "weight_dtype": "bf16",
    "input_len": "990.0",
    "output_len": "3",
    "load_type": "rate",
    "load_value": "2",
    "arrival": "poisson (realised arrivals in file)",
    "num_requests": "3",
    "inflight_cap": "256",
    "quality": "ok",
    "tpot_mean_ms": "12",
    "ttft_mean_ms": "60",
    "notes": "stage=all per_request=raw/somewhere/sweep__agg_2rps__vanilla.csv.gz duration_s=600",
}
FILE = """tenant,arrival_s,send_delay_ms,input_tokens,server_input_tokens,output_tokens,ttft_ms,tpot_ms,e2e_ms,has_error
a,0.5,0.0,1024,1000,3,70,12,94,0
b,0.75,250.0,1024,980,3,60,12,84,0
a,1.5,0.0,1024,990,3,60,12,84,0
"""


@pytest.fixture
def case(tmp_path):
    requests = tmp_path / "requests"
    requests.mkdir()
    (requests / "vllm0230_sweep__agg_2rps__vanilla.csv").write_text(FILE)
    notes = ROW["notes"].replace(".csv.gz", ".csv")
    return ServingCase(ROW | {"notes": notes}, folder=tmp_path / "serving")


def test_its_requests_are_sent_when_they_were_and_are_as_long(case):
    prepared = experiment_of_case(case)
    workload = prepared.experiment.workload
    assert isinstance(workload.arrivals, TraceArrivals)
    assert workload.arrivals.max_concurrency == 256
    assert prepared.assumed[-1:] == ["requests as vllm0230_sweep__agg_2rps__vanilla.csv has them"]
    traffic = workload.arrivals.replay(None, 0, prepared.experiment.folder)
    assert [(each.arrival_s, each.input_tokens) for each in traffic.requests] == [(0.5, 1000), (1.0, 980), (1.5, 990)]


def test_another_arm_was_sent_the_same_requests(case):
    named = case.row["notes"].replace("vanilla", "patched")
    assert experiment_of_case(replace(case, row={**case.row, "notes": named})).experiment.workload.lengths is None


@pytest.mark.parametrize(
    "cells",
    [
        {"num_requests": "4"},
        {"input_len": "991.0"},
        {"quality": "saturated"},
        {"arrival": "poisson"},
        {"notes": "per_request=raw/somewhere/other__run.csv"},
    ],
    ids=lambda cells: next(iter(cells)),
)
def test_otherwise_they_are_drawn(case, cells):
    drawn = experiment_of_case(replace(case, row={**case.row, **cells})).experiment.workload
    assert drawn.arrivals.kind == "poisson"


def test_a_row_without_a_folder_draws_them():
    assert experiment_of_case(ServingCase(ROW)).experiment.workload.arrivals.kind == "poisson"


def test_a_saturated_run_is_simulated_whole():
    cells = {"num_requests": "9000", "quality": "saturated"}
    assert experiment_of_case(ServingCase(ROW | cells)).experiment.workload.num_requests == 9000
    assert experiment_of_case(ServingCase(ROW | cells | {"inflight_cap": ""})).experiment.workload.num_requests == 2000


def test_less_is_chance_in_what_a_fit_sees_of_it(case):
    (replayed,), (drawn,) = points_of([case])[0], points_of([ServingCase(ROW)])[0]
    assert replayed.noise("tpot_mean_ms") == pytest.approx(0.02)
    assert drawn.noise("tpot_mean_ms") == pytest.approx(0.05)
