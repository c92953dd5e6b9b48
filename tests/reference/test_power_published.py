"""Power of boards as measured: Llama-2-70B on A100, while it decodes and at the peak of its prompts (Splitwise)."""

import numpy as np
import pandas as pd
import pytest
from conftest import SHARED
from round_numbers import step_of

from sim.batch import Batch
from sim.profiles.library import load_calibrated_hardware, load_engine, load_hardware, load_model, load_power

POWER = load_power("boards")


@pytest.fixture(scope="module")
def measured():
    """Median of each setting, with the share of the measured decode step in which memory sets the pace."""
    rows = pd.read_csv(SHARED / "data" / "steps" / "splitwise_perf_model.csv")
    rows = rows[(rows.average_power_frac_tdp > 0) & (rows.model == "llama2-70b")]
    by = ["hardware", "tensor_parallel", "prompt_size", "batch_size", "output_tokens"]
    rows = rows.drop(columns="model").groupby(by).median().reset_index()
    assert set(rows.hardware) == {"a100-80gb"}
    rows["reading"] = [_reading(row) for row in rows.itertuples()]
    return rows


def _reading(row):
    gpu = "A100-SXM-80GB"
    cost = step_of(
        load_model("meta-llama/Llama-2-70b-hf"),
        load_hardware(gpu),
        load_calibrated_hardware(gpu),
        host=load_engine("vllm").at("0.4.2"),
        tp=row.tensor_parallel,
    )
    context = row.batch_size * (row.prompt_size + row.output_tokens // 2)
    batch = Batch(decodes=row.batch_size, decode_context_tokens=context, sampled=row.batch_size)
    return cost.limits(batch)["memory"] * cost.pace(batch).first_s * 1e3 / row.token_time_ms_per_token


@pytest.mark.shared
def test_decode_power_is_a_line_in_the_time_that_memory_is_read_for(measured):
    rows = measured[measured.prompt_size <= 2048]  # above, the mean falls below what decoding alone draws
    shares = np.c_[1 - rows.reading, rows.reading]
    fitted, *_ = np.linalg.lstsq(shares, rows.average_power_frac_tdp, rcond=None)
    assert fitted == pytest.approx([POWER.waiting_share, POWER.memory_share], abs=0.015)
    predicted = shares @ [POWER.waiting_share, POWER.memory_share]
    assert abs(predicted / rows.average_power_frac_tdp - 1).mean() < 0.05


@pytest.mark.shared
@pytest.mark.parametrize("left_out", [2, 4, 8])
def test_the_error_on_a_number_of_gpus_that_was_left_out(measured, left_out):
    rows = measured[measured.prompt_size <= 2048]
    shares, power = np.c_[1 - rows.reading, rows.reading], rows.average_power_frac_tdp.to_numpy()
    seen = (rows.tensor_parallel != left_out).to_numpy()
    fitted, *_ = np.linalg.lstsq(shares[seen], power[seen], rcond=None)
    assert abs(shares[~seen] @ fitted / power[~seen] - 1).mean() < POWER.error + 0.01


@pytest.mark.shared
def test_long_prompts_draw_all_that_the_board_may(measured):
    peaks = measured[measured.prompt_size >= 2048].peak_power_frac_tdp
    assert peaks.min() > 0.94
    assert peaks.mean() == pytest.approx(POWER.compute_share, abs=0.05)


def test_shares_of_time_become_a_share_of_the_limit():
    shares = {"compute": 0.5, "memory": 0.25, "link": 0.125, "host": 0.125}
    assert POWER.busy_share(shares) == pytest.approx(0.5 * 1.0 + 0.25 * 0.89 + 0.25 * 0.31)
    assert POWER.busy_share({"base": 1.0}) is None, "a line of step time does not know what it waits for"
    assert POWER.busy_share({}) is None
