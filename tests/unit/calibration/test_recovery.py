"""Synthetic runs from known constants, of an engine whose latencies can be written down, through the real fit."""

import itertools
from dataclasses import dataclass

import pytest
from scipy.stats import binom

from calibration.cases.serving import ServingCase
from calibration.fitting.points import METRICS, points_of
from calibration.recovery import recover, shares, sweep
from sim.simulate import Setup

FITS = 40


@dataclass(frozen=True)
class Engine:
    """A batch that reads its weights and its users' contexts, and computes a prompt while others decode."""

    case: ServingCase
    setup: Setup
    prompt: int
    users: int
    layers: int
    measured: dict

    def noise(self, metric):
        return METRICS[metric]

    def predicted(self, constants):
        def value(name):
            return constants.value(name, 1.0 if name.endswith("_factor") else 0.0)

        memory_s = (0.1 + 1e-6 * self.users * self.prompt) * self.layers / 500
        decode_s = memory_s / value("memory_factor") + 20e-6 * self.layers * value("kernel_time_factor")
        prefill_s = decode_s + 1e-6 * self.prompt * self.layers / value("compute_factor")
        host_s = value("host_per_iteration_s") + value("host_per_sequence_s") * self.users
        combined = max if constants.overlapped else lambda *times: sum(times)
        tpot_s = combined(decode_s, host_s)
        ttft_s = combined(prefill_s, host_s + value("host_per_prefill_s"))
        ttft_s += value("delay_fixed_s") + value("delay_per_prompt_token_s") * self.prompt
        ttft_s += value("stream_lag_iterations") * tpot_s
        return {"ttft_mean_ms": 1e3 * ttft_s, "tpot_mean_ms": 1e3 * tpot_s}


@pytest.fixture(scope="module")
def runs():
    point, runs = sweep()[0], []
    for shape in itertools.product((128, 1024, 4096), (1, 8, 64), (16, 80)):
        row = {**point.case.row, "case_id": f"{shape}", "input_len": f"{shape[0]}"}
        runs.append(Engine(ServingCase(row), point.setup, *shape, {}))
    return runs


@pytest.mark.parametrize("noise", [0.4, 1.0])
def test_intervals_hold_as_often_as_they_say_despite_outliers(runs, noise):
    found = shares([recover(runs, seed, noise) for seed in range(FITS)])
    assert 0.85 <= found.pop("all") <= 0.97
    low, high = binom.ppf([0.001, 0.999], FITS, 0.9) / FITS
    assert high == 1
    assert {name: share for name, share in found.items() if share < low} == {}


def test_a_simulated_sweep_comes_back():
    points = sweep()
    assert len(points) == 12
    assert sum(recover(points[::3], 0).values()) >= 6


def test_points_of_a_sweep_are_all_modelled():
    assert points_of([point.case for point in sweep()])[1] == {}
