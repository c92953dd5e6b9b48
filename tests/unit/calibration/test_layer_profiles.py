"""Layer times of a simulator's profiler as rows of kernels."""

import gzip

import pytest

from calibration.kernels.layer_profiles import main, rows
from calibration.kernels.measured import read

LLAMA = "meta-llama/Llama-3.1-8B"
HEADS = "hardware,model,dtype,tp,"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "llmservingsim_profile_dense.csv").write_text(
        f"{HEADS}layer,tokens,time_us\n"
        f"RTX4090,{LLAMA},bf16,tp1,qkv_proj,16,56.5\n"
        f"RTX4090,{LLAMA},bf16,tp1,down_proj,512,376\n"
        f"RTX4090,{LLAMA},bf16,tp1,layernorm,512,9\n"
        f"RTX4090,{LLAMA},bf16,tp2,down_proj,512,190\n"
        f"RTXPRO6000,{LLAMA},bf16,tp1,down_proj,512,200\n"
    )
    (tmp_path / "llmservingsim_profile_per_sequence.csv").write_text(
        f"{HEADS}layer,sequences,time_us\nRTX4090,{LLAMA},bf16,tp1,lm_head,1,1097\n"
    )
    with gzip.open(tmp_path / "llmservingsim_profile_attention.csv.gz", "wt") as file:
        file.write(f"{HEADS}prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n")
        file.write(f"RTX4090,{LLAMA},bf16,tp1,0,0,8,1024,55.6\n")
        file.write(f"RTX4090,{LLAMA},bf16,tp1,256,0,0,0,30\n")
        file.write(f"RTX4090,{LLAMA},bf16,tp1,256,512,0,0,50\n")
        file.write(f"RTX4090,{LLAMA},bf16,tp1,16,0,8,1024,60\n")
    return tmp_path


def test_products_and_pure_attention_on_one_rank(folder):
    found = [(row.operation, row.m, row.n, row.k, row.batch, row.context) for row in rows(folder, "RTX4090")]
    assert found == [
        ("gemm", 16, 6144, 4096, 0, 0),  # 32 heads and 2 x 8 KV heads of 128
        ("gemm", 512, 4096, 14336, 0, 0),
        ("gemm", 1, 128256, 4096, 0, 0),
        ("decode", 0, 0, 0, 8, 1024),
        ("prefill", 0, 0, 0, 1, 256),
    ]
    assert next(rows(folder, "RTX4090")).seconds == pytest.approx(56.5e-6)


def test_the_file_is_one_that_fit_reads(folder):
    assert main([str(folder), "RTX4090", "-o", str(folder / "kernels.csv")]) == 0
    kernels = read(folder / "kernels.csv")
    assert {row.gpu for row in kernels} == {"RTX-4090"}
    assert kernels[1].seconds == pytest.approx(376e-6)
