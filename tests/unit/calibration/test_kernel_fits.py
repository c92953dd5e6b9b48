"""Fits of kernel constants: known truth comes back, and the rules that pick rows hold."""

import itertools

import numpy as np
import pandas as pd
import pytest

from calibration.kernels import problems, tables
from calibration.kernels.fitting import correlations, errors, fit, untold
from calibration.kernels.tables import Table
from sim.profiles.library import load_hardware

H100 = load_hardware("H100-SXM-80GB")
TRUTH = {
    "compute": 0.75,
    "memory": 0.82,
    "sharpness": 2.5,
    "launch_s": 6e-6,
    "depth": 0.3,
    "prologue": 200.0,
    "quantise": 2.5,
}


def _products(noise=0.02, outliers=0.07):
    random = np.random.default_rng(3)
    shapes = pd.DataFrame(
        list(itertools.product((1, 8, 64, 256, 1024, 4096, 16384), (1024, 4096, 14336), (1024, 4096, 14336))),
        columns=["m", "n", "k"],
    )
    problem = problems.gemm(H100, "fp8")
    seconds = problem.predict(problem.constants(TRUTH), shapes) * np.exp(random.normal(0, noise, len(shapes)))
    hit = random.random(len(shapes)) < outliers
    shapes["seconds"] = np.where(hit, seconds * random.uniform(1.5, 3.0, len(shapes)), seconds)
    return problem, Table(shapes, "made up", "", 0)


def test_known_constants_come_back_in_spite_of_outliers():
    problem, table = _products()
    constants = fit(problem, table)
    for name, truth in TRUTH.items():
        found = getattr(constants, name)
        assert abs(found.value - truth) < 4 * found.stderr, name
        assert 0 < found.stderr < 0.5 * truth, name
    assert constants.fit.median_error < 0.03
    assert constants.fit.rows == len(table)


def test_a_constant_that_the_shapes_cannot_tell_has_a_wide_error():
    problem, table = _products(noise=0.02, outliers=0.0)
    tiny = table.shapes[table.shapes.m <= 8]  # no product is bound by compute
    constants = fit(problem, Table(tiny, "made up", "", 0))
    assert constants.memory.stderr < 0.1 * constants.memory.value
    assert constants.compute.stderr > 0.3 * constants.compute.value


def test_fixed_constants_stay():
    problem, table = _products()
    assert problem.free["launch_s"].low < problem.free["launch_s"].high
    dense = problems.gemm(H100, "bf16")
    found = fit(dense, table)
    assert (found.quantise.value, found.quantise.status) == (0.0, "fixed")


def _write(folder, name, rows):
    pd.DataFrame(rows).to_csv(folder / name, index=False, compression="gzip")


@pytest.fixture(autouse=True)
def _fresh():
    tables._read.cache_clear()


def test_rules_for_products(tmp_path):
    row = {"backend_name": "vllm", "dtype": "fp8_block", "m": 16, "n": 4096, "k": 4096, "latency_ms": 0.02}
    rows = [
        row,  # eager
        row | {"backend_name": "trtllm"},
        row | {"backend_name": "sglang", "latency_ms": 0.08},  # the same shape again: geometric mean
        row | {"backend_name": "trtllm", "n": 256},  # no product of a layer
        row | {"backend_name": "trtllm", "m": 1, "latency_ms": 0.004},  # 16 MiB in 4 us: from the cache
    ]
    _write(tmp_path, "gemm_h100_sxm.csv.gz", rows)
    found = tables.gemm(tmp_path, "h100_sxm", "fp8_block", ("vllm", "trtllm", "sglang"), H100)
    assert found.shapes.seconds.tolist() == pytest.approx([4e-5])
    assert found.excluded == 2
    assert len(found.sha256) == 64


def test_rules_for_attention(tmp_path):
    row = {
        "backend_name": "vllm",
        "kv_cache_dtype": "fp8",
        "batch_size": 8,
        "kv_len": 4096,
        "heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "window_size": 0,
        "latency_ms": 0.05,
    }
    impossible = {"batch_size": 64, "kv_len": 4096}  # 0.5 GB in 50 us
    grouped = {"backend_name": "trtllm", "heads": 64, "kv_heads": 1}
    alone = {"backend_name": "trtllm", "heads": 8}
    changes = ({}, {"window_size": 1024}, {"window_size": 128}, {"kv_len": 64}, {"batch_size": 1024}, {"head_dim": 512})
    changes += (impossible, grouped, alone)
    _write(tmp_path, "attn_gen_h100_sxm.csv.gz", [row | change for change in changes])
    found = tables.decode(tmp_path, "h100_sxm", "fp8", ("vllm", "trtllm"), H100)
    assert found.shapes.attended.tolist() == [1024, 4096]
    assert found.excluded == 7
    assert len(tables.decode(tmp_path, "h200_sxm", "fp8", ("vllm",), H100)) == 0


def test_constants_that_shapes_cannot_tell_apart_are_correlated():
    """With one KV head a sequence and eight query heads, the time of either is the same to the fit."""
    problem = problems.decode(H100, "bf16", wide=False)
    values = {name: free.start for name, free in problem.free.items()}
    shapes = pd.DataFrame(
        [(b, c, 8, 1, 128) for b in (1, 16, 256) for c in (256, 4096, 65536)],
        columns=["batch_size", "attended", "heads", "kv_heads", "head_dim"],
    )
    shapes["seconds"] = problem.predict(problem.constants(values), shapes)
    found = correlations(problem, values, shapes)
    assert "compute" not in found  # not fitted
    assert abs(found["head_s"]["tile_s"]) > 0.9
    assert "launch_s" not in found  # alone in the shortest one
    assert untold(problem, values, {"tile_s": 0.6 * values["tile_s"], "launch_s": 1e-9}) == ("tile_s",)


def test_prompts_over_fp8_are_those_that_tensorrt_llm_computes_in_fp8(tmp_path):
    row = {
        "backend_name": "trtllm",
        "attn_dtype": "fp8",
        "kv_cache_dtype": "fp8",
        "batch_size": 8,
        "isl": 1024,
        "past_kv": 0,
        "heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "window_size": 0,
        "latency_ms": 0.05,
    }
    other = {"attn_dtype": "bfloat16", "isl": 2048}
    _write(tmp_path, "attn_ctx_h100_sxm.csv.gz", [row, row | other, row | other | {"backend_name": "vllm"}])
    assert tables.prefill(tmp_path, "h100_sxm", "fp8", ("trtllm",)).shapes.isl.tolist() == [1024]
    assert tables.prefill(tmp_path, "h100_sxm", "fp8", ("vllm",)).shapes.isl.tolist() == [2048]


def test_small_caches_in_the_benchmark_do_not_raise_the_bandwidth_of_the_memory():
    """KV that stays in the L2 is read four times faster; the fitted memory bandwidth must not see it."""
    l40s = load_hardware("L40S")
    problem = problems.decode(l40s, "bf16", wide=False)
    truth = {
        "compute": 0.5,
        "memory": 0.78,
        "tile_s": 4e-7,
        "launch_s": 1e-5,
        "resident_share": 1.0,
        "resident_memory": 3.0,
        "wide": 1.0,
        "head_s": 5e-9,
        "walk_s": 1e-10,
        "ramp": 0.0,
        "ramp_s": 0.0,
    }
    shapes = pd.DataFrame(
        [(b, c, 32, 8, 128) for b in (1, 4, 16, 64, 256) for c in (256, 1024, 4096, 16384)],
        columns=["batch_size", "attended", "heads", "kv_heads", "head_dim"],
    )
    shapes["seconds"] = problem.predict(problem.constants(truth), shapes)
    found = fit(problem, Table(shapes, "made up", "", 0))
    assert found.memory.value == pytest.approx(0.78, rel=0.01)
    assert np.abs(errors(problem, found, shapes)).max() < 0.02


def test_the_size_from_which_a_kernel_reads_at_its_full_rate_comes_back():
    """Up to 40 MB, which take 20 us at the full rate of 2e12 B/s, twice the time; 20 us more beyond."""
    problem = problems.decode(H100, "fp8", wide=False, ramp=True)
    rate = 2e12 / H100.memory_bytes_per_s
    truth = {name: free.start for name, free in problem.free.items()} | {"memory": rate, "ramp": 1.0, "ramp_s": 2e-5}
    shapes = pd.DataFrame(
        [(b, c, 32, 8, 128) for b in (1, 4, 16, 64, 256) for c in (256, 1024, 4096, 16384)],
        columns=["batch_size", "attended", "heads", "kv_heads", "head_dim"],
    )
    shapes["seconds"] = problem.predict(problem.constants(truth), shapes)
    found = fit(problem, Table(shapes, "made up", "", 0))
    assert (found.memory.value, found.ramp.value) == pytest.approx((rate, 1.0), rel=0.01)
    assert found.ramp_s.value == pytest.approx(2e-5, rel=0.01)


def test_an_all_reduce_comes_back_with_the_sizes_at_which_its_algorithm_changes():
    truth = {
        "small_below_bytes": 2.0**18,
        "small_link": 0.2,
        "small_launch_s": 5e-6,
        "medium_below_bytes": 2.0**23,
        "medium_link": 0.5,
        "medium_launch_s": 1.2e-5,
        "large_link": 0.8,
        "large_launch_s": 4e-5,
    }
    problem = problems.all_reduce(H100, 4)
    shapes = pd.DataFrame({"bytes": [2**power for power in range(10, 30)]})
    shapes["seconds"] = problem.predict(problem.constants(truth), shapes)
    shapes.loc[3, "seconds"] *= 2  # an outlier
    found = fit(problem, Table(shapes, "made up", "", 0))
    for size in ("small", "medium", "large"):
        assert getattr(found, f"{size}_launch_s").value == pytest.approx(truth[f"{size}_launch_s"], rel=0.03)
        assert getattr(found, f"{size}_link").value == pytest.approx(truth[f"{size}_link"], rel=0.03)
    assert 2**17 < found.small_below_bytes.value <= 2**18
    assert 2**22 < found.medium_below_bytes.value <= 2**23
    assert found.fit.median_error < 0.02
