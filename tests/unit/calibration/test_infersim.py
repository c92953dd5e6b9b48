"""Kernel tables of InferSim as rows of kernels."""

import pytest

from calibration.kernels.infersim import main, rows
from calibration.kernels.measured import read


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "infersim_gemm.csv").write_text(
        "gpu,m,k,n,latency_us,mfu\nh20,16,2048,6144,10.63,0.128\nh800,16,2048,6144,8,0.1\n"
    )
    (tmp_path / "infersim_kernels.csv").write_text(
        "op,phase,gpu,shape_file,dtype,kv_dtype,batch_size,seq_or_kv_len,latency_us,mfu\n"
        "mha,decode,h20,128-2-128,bf16,bf16,16,1024,29.16,0.016\n"
        "mha,decode,h20,128-2-128,bf16,fp8,16,1024,25,0.016\n"
        "mla,decode,h20,128,bf16,bf16,1,1024,29.16,0.016\n"
        "mha,prefill,h20,16-1-256,bf16,,1,4096,1038,0.894\n"
    )
    return tmp_path


def test_products_in_blocks_and_grouped_attention_in_16_bits(folder):
    product, decode, prefill = rows(folder, "h20")
    assert (product.operation, product.dtype, product.m, product.n, product.k) == ("gemm", "fp8_block", 16, 6144, 2048)
    assert product.seconds == pytest.approx(10.63e-6)
    assert (decode.batch, decode.context, decode.heads, decode.kv_heads, decode.head_dim) == (16, 1024, 128, 2, 128)
    assert (prefill.operation, prefill.batch, prefill.context, prefill.head_dim) == ("prefill", 1, 4096, 256)


def test_the_file_is_one_that_fit_reads(folder):
    assert main([str(folder), "h800", "-o", str(folder / "kernels.csv")]) == 0
    assert [row.gpu for row in read(folder / "kernels.csv")] == ["H800-SXM-80GB"]
