"""Formats that no published file here shows, written as the tools' sources write them."""

import gzip
import json

import pytest

from calibration.importers import import_file
from calibration.reading import Record
from sim.units import GIB


def read(tmp_path, text):
    path = tmp_path / "output"
    path.write_text(text)
    return import_file(path)


def test_vllm_latency_is_seconds(tmp_path):
    percentiles = {"10": 1.1, "50": 1.5, "90": 1.9, "99": 1.99}
    document = {"avg_latency": 1.5, "latencies": [1.0, 2.0], "percentiles": percentiles}
    (run,) = read(tmp_path, json.dumps(document))
    assert (run.format, run.load, run.load_value) == ("vLLM bench latency", "batch", None)
    assert (run.e2e_mean_s, run.e2e_p99_s, run.e2e_p95_s) == (1.5, 1.99, pytest.approx(1.95))


def test_vllm_latency_printed_with_its_arguments(tmp_path):
    text = (
        "Namespace(model='facebook/opt-125m', tensor_parallel_size=2, input_len=32, output_len=128, batch_size=8)\n"
        "Avg latency: 0.75 seconds\n10% percentile latency: 0.7 seconds\n99% percentile latency: 0.9 seconds\n"
    )
    (run,) = read(tmp_path, text)
    assert (run.load_value, run.input_len, run.output_len, run.tp) == (8, 32, 128, 2)
    assert (run.e2e_mean_s, run.e2e_p99_s) == (0.75, 0.9)


def test_vllm_throughput_counts_prompts_in_tokens_per_second(tmp_path):
    document = {
        "elapsed_time": 10.0,
        "num_requests": 100,
        "total_num_tokens": 50_000,
        "requests_per_second": 10.0,
        "tokens_per_second": 5000.0,
    }
    (run,) = read(tmp_path, json.dumps(document))
    assert (run.load, run.total_tok_s, run.output_tok_s, run.duration_s) == ("offline", 5000, None, 10)


def test_vllm_throughput_printed(tmp_path):
    text = (
        "Namespace(model='m', num_prompts=1000)\n"
        "Throughput: 12.50 requests/s, 4567.80 total tokens/s, 1234.50 output tokens/s\n"
        "Total num prompt tokens:  220000\nTotal num output tokens:  98760\n"
    )
    (run,) = read(tmp_path, text)
    assert (run.req_s, run.total_tok_s, run.output_tok_s) == (12.5, 4567.8, 1234.5)
    assert (run.input_len, run.output_len) == (220, 98.76)


def test_two_printed_reports_keep_their_own_arguments(tmp_path):
    block = (
        "Namespace(model='m', request_rate={rate}, max_concurrency=None)\n 50%|##   | 5/10\r100%|####| 10/10\n"
        "============ Serving Benchmark Result ============\n"
        "Successful requests:                     10\nBenchmark duration (s):                  2.00\n"
        "Total input tokens:                      1,000\nTotal generated tokens:                  500\n"
        "Request throughput (req/s):              5.00\nOutput token throughput (tok/s):         250.00\n"
        "Total Token throughput (tok/s):          750.00\n"
        "---------------Time to First Token----------------\nMean TTFT (ms):                          12.50\n"
        "----------------End-to-end Latency----------------\nMean E2EL (ms):                          80.00\n"
        "==================================================\n"
    )
    first, second = read(tmp_path, block.format(rate="4.0") + block.format(rate="inf"))
    assert (first.load, first.load_value, second.load) == ("rate", 4.0, "offline")
    assert (first.ttft_mean_s, first.e2e_mean_s, first.total_tok_s) == pytest.approx((0.0125, 0.08, 750))
    assert (first.input_len, first.num_requests) == (100, 10)


def test_vllm_latency_of_two_runs_in_one_log(tmp_path):
    block = "Namespace(batch_size={})\nAvg latency: {} seconds\n50% percentile latency: {} seconds\n"
    first, second = read(tmp_path, block.format(1, 0.5, 0.4) + block.format(8, 0.9, 0.8))
    assert (first.load_value, first.e2e_mean_s, first.e2e_p50_s) == (1, 0.5, 0.4)
    assert (second.load_value, second.e2e_mean_s, second.e2e_p50_s) == (8, 0.9, 0.8)


def test_sglang_printed_report(tmp_path):
    text = (
        "============ Serving Benchmark Result ============\nBackend:                                 sglang\n"
        "Traffic request rate:                    2.0\nSuccessful requests:                     996\n"
        "Benchmark duration (s):                  264.25\nRequest throughput (req/s):              3.77\n"
        "Mean E2E Latency (ms):                   2098.07\n==================================================\n"
    )
    (run,) = read(tmp_path, text)
    assert (run.engine, run.load_value, run.e2e_mean_s) == ("sglang", 2.0, pytest.approx(2.09807))


def test_vllm_sweep_as_csv(tmp_path):
    header = "num_prompts,completed,request_throughput,output_throughput,request_rate,max_concurrency,mean_ttft_ms"
    (run,) = read(tmp_path, f"{header},max_num_seqs\n8,8,2.0,32.0,inf,4,50.0,16\n")
    assert (run.load, run.load_value, run.ttft_mean_s, run.max_num_seqs) == ("concurrency", 4, 0.05, 16)


def test_genai_perf_json(tmp_path):
    document = {
        "request_throughput": {"unit": "requests/sec", "avg": 2.0},
        "request_latency": {"unit": "ms", "avg": 500.0, "p99": 900.0},
        "time_to_first_token": {"unit": "ns", "avg": 40_000_000},
        "input_config": {"perf_analyzer": {"stimulus": {"concurrency": 4}}},
    }
    (run,) = read(tmp_path, json.dumps(document))
    assert (run.format, run.load_value) == ("GenAI-Perf JSON", 4)
    assert (run.e2e_p99_s, run.ttft_mean_s) == pytest.approx((0.9, 0.04))


def test_guidellm_before_version_2(tmp_path):
    metric = {"successful": {"mean": 20.0, "median": 19.0, "percentiles": {"p99": 30.0}}}
    document = {
        "benchmarks": [
            {
                "args": {"strategy": {"type_": "concurrent", "streams": 8}},
                "metrics": {"time_to_first_token_ms": metric, "request_totals": {"successful": 5, "total": 5}},
            }
        ]
    }
    (run,) = read(tmp_path, json.dumps(document))
    assert (run.load, run.load_value, run.ttft_p50_s, run.ttft_p99_s) == ("concurrency", 8, 0.019, 0.03)


def test_trtllm_bench_report(tmp_path):
    document = {
        "engine": {"model": "m", "version": "1.0", "dtype": "bfloat16", "quantization": "FP8"},
        "world_info": {"tp_size": 2, "pp_size": 1, "world_size": 2, "issue_rate": 1e15},
        "request_info": {"num_requests": 100, "avg_input_length": 128.0, "avg_output_length": 64.0},
        "performance": {"total_latency_ms": 5000.0, "system_output_throughput_tok_s": 1280.0},
        "streaming_metrics": {"ttft_percentiles": {"average": 80.0, "p99": 200.0}},
    }
    (run,) = read(tmp_path, json.dumps(document))
    assert (run.n_gpus, run.load, run.duration_s, run.ttft_p99_s) == (2, "offline", 5, 0.2)


def test_llama_bench_json_lines(tmp_path):
    common = {"build_number": 7941, "model_type": "llama 7B Q4_0"}
    rows = [
        {"n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ts": 1000.0},
        {"n_prompt": 0, "n_gen": 128, "n_depth": 4096, "avg_ts": 50.0},
    ]
    prompt, generation = read(tmp_path, "\n".join(json.dumps(common | row) for row in rows))
    assert (prompt.ttft_mean_s, prompt.output_len) == (0.512, 0)
    assert (generation.tpot_mean_s, generation.input_len, generation.version) == (0.02, 4096, "7941")


def test_llama_batched_bench_json_lines(tmp_path):
    row = {"pp": 128, "tg": 64, "pl": 4, "n_kv": 384, "t_pp": 0.1, "t_tg": 1.28, "t": 1.38, "speed": 278}
    (run,) = read(tmp_path, json.dumps(row | {"is_pp_shared": 1}))
    assert (run.ttft_mean_s, run.tpot_mean_s, run.load_value, run.shared_prefix_tokens) == (0.1, 0.02, 4, 128)


@pytest.mark.parametrize(
    ("weights", "kv"),
    [
        ("Model loading took 4.2117 GiB and 5.31 seconds", "Available KV cache memory: 1.50 GiB"),
        # Version 0 divides by 2**30 and prints GB.
        ("Loading model weights took 4.2117 GB", "reserved for KV Cache is 1.50GiB."),
    ],
)
def test_vllm_start_up_log(tmp_path, weights, kv):
    text = (
        "INFO 10-06 12:00:00 [utils.py:328] non-default args: {'max_num_seqs': 128, 'model': 'typed'}\n"
        "INFO 10-06 12:00:01 [core.py:75] Initializing a V1 LLM engine (v0.10.2) with config: model='org/name', "
        "speculative_config=None, dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=2, quantization=None, "
        "kv_cache_dtype=auto, enable_prefix_caching=True\n"
        f"INFO 10-06 12:00:09 [gpu_model_runner.py:2370] {weights}\nINFO 10-06 12:00:31 [gpu_worker.py:298] {kv}\n"
        "INFO 10-06 12:00:31 [kv_cache_utils.py:1087] GPU KV cache size: 49,152 tokens\n"
        "INFO 10-06 12:00:40 [gpu_model_runner.py:3480] Graph capturing finished in 8 secs, took 0.31 GiB\n"
    )
    (run,) = read(tmp_path, text)
    assert (run.version, run.model, run.tp, run.max_num_seqs) == ("0.10.2", "org/name", 2, 128)
    assert (run.weights_bytes, run.kv_bytes) == pytest.approx((4.2117 * GIB, 1.5 * GIB))
    assert (run.cuda_graph_bytes, run.kv_tokens) == (pytest.approx(0.31 * GIB), 49152)
    assert (run.weight_dtype, run.kv_dtype, run.prefix_caching, run.max_model_len) == ("bfloat16", None, True, 8192)


def test_llmd_report_in_milliseconds_means_milliseconds(tmp_path):
    document = {
        "version": "0.2.1",
        "scenario": {},
        "results": {
            "request_performance": {"aggregate": {"latency": {"time_to_first_token": {"mean": 250, "units": "ms"}}}}
        },
    }
    (run,) = read(tmp_path, json.dumps(document))
    assert run.ttft_mean_s == 0.25


def test_mlperf_offline_and_invalid(tmp_path):
    text = (
        "MLPerf Results Summary\nScenario : Offline\nSamples per second: 10\nTokens per second: 3000\n"
        "Result is : INVALID\nMean latency (ns) : 2000000000\n"
    )
    (run,) = read(tmp_path, text)
    assert (run.load, run.quality, run.output_len, run.e2e_mean_s) == ("offline", "invalid", 300, 2)


def test_gzip_in_several_members(tmp_path):
    row = {"pp": 1, "tg": 1, "pl": 1, "n_kv": 2, "t_pp": 0.1, "t_tg": 0.1, "t": 0.2, "speed": 10}
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(json.dumps(row).encode()) + gzip.compress(b"\n" + json.dumps(row).encode()))
    assert len(import_file(path)) == 2


REPORT = """============ Serving Benchmark Result ============
Successful requests:                     1,200
Benchmark duration (s):                  60.0
Mean TTFT (ms):                          1,216.4
==================================================
"""


@pytest.mark.parametrize(
    "content",
    [
        REPORT.encode(),
        REPORT.replace("\n", "\r\n").encode(),
        REPORT.encode("utf-16"),
        b"\xef\xbb\xbf" + REPORT.encode(),
        REPORT.replace("Mean", "\x1b[1mMean\x1b[0m").encode(),
        b"50%|## | 1/2\r100%|###| 2/2\n" + REPORT.encode(),
    ],
    ids=["plain", "CRLF", "UTF-16", "BOM", "colours", "progress"],
)
def test_a_report_reads_alike_however_it_was_saved(tmp_path, content):
    path = tmp_path / "output"
    path.write_bytes(content)
    (run,) = import_file(path)
    assert (run.completed, run.ttft_mean_s) == (1200, pytest.approx(1.2164))


def test_a_table_may_have_semicolons(tmp_path):
    commas, semicolons = (read(tmp_path, f"arrival_s{s}output_tokens{s}e2e_ms\n0{s}5{s}10.5\n") for s in ",;")
    assert semicolons[0].e2e_mean_s == commas[0].e2e_mean_s == pytest.approx(0.0105)


@pytest.mark.parametrize(
    ("written", "day"),
    [
        ("20260610-205322", "2026-06-10"),
        ("2026-06-10T20:53:22", "2026-06-10"),
        (1703136129, "2023-12-21"),
        ("2024", "2024"),
        ("last week", "last week"),
    ],
)
def test_days_are_told_from_how_tools_write_them(written, day):
    assert Record({"date": written}, "run.json").date("date") == day
