"""Every format on published files, with the values from the file: units, definitions and rates that fool importers."""

import pytest

from calibration.importers import import_file
from sim.errors import TraceError
from tests.conftest import SHARED

FILES = SHARED / "data" / "bench_outputs"

pytestmark = pytest.mark.shared


def read(name):
    return import_file(FILES / name)


def only(name):
    (run,) = read(name)
    return run


EXPECTED = {
    "aiperf_profile_export_qwen_c1.json": {"AIPerf JSON": 1},
    "aiperf_profile_export_rtx5090_qwen36_35b_nvfp4_agent_c16.csv": {"AIPerf CSV": 1},
    "custom_qps_summary_a100_qwen25_7b.csv": {"CSV by request rate": 10},
    "custom_request_log_rtx3090_qwen25_7b.csv": {"per-request CSV": 4},
    "fwai_locust_summaries_rtx4090.md": {"Fireworks locust summary": 24},
    "genai_perf_profile_excerpt.csv": {"GenAI-Perf CSV": 1},
    "guidellm_report_v2.json": {"GuideLLM": 2},
    "inference_perf_lifecycle.yaml": {"inference-perf": 1},
    "inference_perf_stage3_lifecycle.json": {"inference-perf": 1},
    "inference_perf_summary_lifecycle.json": {"inference-perf": 1},
    "inferencex_api_benchmarks_slice.json": {"InferenceX API row": 24},
    "inferencex_bench_serving_gptoss120b_h200_tp4_c64.json": {"vLLM bench serve": 1},
    "inferencex_dashboard_export_gptoss120b.csv": {"InferenceX CSV export": 16},
    "llama_batched_bench_dgx_spark.md": {"llama-batched-bench, Markdown": 108, "llama-bench, Markdown": 60},
    "llama_batched_bench_m2_ultra.md": {"llama-batched-bench, Markdown": 108, "llama-bench, Markdown": 60},
    "llama_bench_curve_strix_halo.csv": {"llama-bench": 90},
    "llama_bench_md_strix_halo_llama2_7b.log": {"llama-bench, Markdown": 2},
    "llmd_benchmark_report_v0_2_1_example.yaml": {"llm-d benchmark report": 1},
    "llmperf_fork_tgi_llama3_8b_summary.json": {"LLMPerf by concurrency": 8},
    "llmperf_summary_anyscale_70b.json": {"LLMPerf summary": 1},
    "mlperf_v51_mi300x_llama2_70b_server_summary.txt": {"MLPerf summary": 1},
    "semianalysis_minimax_m25_seconds.json": {"vLLM bench serve": 1},
    "sglang_bench_serving_gh200_qwen25_3b_c32.jsonl": {"sglang bench_serving": 1},
    "trtllm_bench_throughput_stdout_v012.txt": {"trtllm-bench, printed": 1},
    "trtllm_bench_throughput_stdout_v1x.txt": {"trtllm-bench, printed": 1},
    "vllm_085_concatenated_objects_h100pcie.json": {"vLLM bench serve": 2},
    "vllm_085_sharegpt_rtx4090_8b_16qps.json": {"vLLM bench serve": 1},
    "vllm_bench_serve_stdout_minimax_h100_c8.log": {"vLLM or sglang serving report": 1},
    "vllm_bench_serve_v0251.json": {"vLLM bench serve": 1},
    "vllm_bench_serve_v0251_all_failed.json": {"vLLM bench serve": 1},
    "vllm_bench_sweep_v0251_summary.json": {"vLLM bench serve": 2},
    "vllm_gptoss120b_h200_c256.json": {"vLLM bench serve": 1},
    "vllm_gptoss120b_h200_c64_gt_ttfts.json": {"vLLM bench serve": 1},
    "vllm_gptoss120b_h200_metrics_table.tsv": {"table of vLLM runs with server metrics": 51},
    "vllm_old_detailed_h100_8b_fp8_c32.json": {"vLLM bench serve": 1},
    "vllm_old_detailed_l40s_8b_fp8_c32.json": {"vLLM bench serve": 1},
}
REFUSED = {
    "inference_perf_stage3_prometheus.json": "a window that is not the stage's",
    "fireworks_llm_bench_README.md": "no result of a known tool, but 176 lines of text",
}


def test_all_published_files_are_read_or_refused():
    assert {path.name for path in FILES.iterdir()} - {"MANIFEST.csv"} == EXPECTED.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_is_told_by_its_content_under_any_name(name, tmp_path):
    copy = tmp_path / "results.dat"
    copy.write_bytes((FILES / name).read_bytes())
    found = {}
    for run in import_file(copy):
        found[run.format] = found.get(run.format, 0) + 1
    assert found == EXPECTED[name]


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_why_in_one_line(name):
    with pytest.raises(TraceError, match=REFUSED[name]) as refusal:
        read(name)
    assert "\n" not in str(refusal.value)


class TestVllmServe:
    def test_milliseconds_by_suffix(self):
        run = only("vllm_085_sharegpt_rtx4090_8b_16qps.json")
        assert run.ttft_mean_s == pytest.approx(0.08584529240150005)
        assert run.tpot_p99_s == pytest.approx(0.04545837601957222)
        assert (run.gpu, run.n_gpus, run.load, run.load_value) == ("NVIDIA-GeForce-RTX-4090", 1, "rate", 16.0)

    def test_seconds_without_suffix(self):
        run = only("semianalysis_minimax_m25_seconds.json")
        assert (run.ttft_p50_s, run.tpot_p50_s) == (6.681569178588688, 0.026423740552694308)
        assert run.ttft_mean_s is None
        assert (run.load, run.load_value) == ("concurrency", 32)

    def test_objects_one_after_another(self):
        first, second = read("vllm_085_concatenated_objects_h100pcie.json")
        assert (first.ttft_mean_s, second.ttft_mean_s) == pytest.approx((0.04089414172602119, 0.04119776571082184))

    def test_lengths_are_those_served(self):
        run = only("vllm_gptoss120b_h200_c64_gt_ttfts.json")
        assert run.output_len == pytest.approx(2306977 / 2560)  # asked for: 1,024
        assert run.requests.ttft_s[0] == pytest.approx(3.9439373850000266)
        assert run.requests.gaps_s is None

    def test_detailed_arrays_give_the_latency_that_the_file_leaves_out(self):
        run = only("vllm_old_detailed_h100_8b_fp8_c32.json")
        assert (run.load, run.load_value, run.inflight_cap) == ("rate", 10.0, 32)
        assert [len(gaps) for gaps in run.requests.gaps_s] == [84] * 100
        assert run.requests.tpot_s.mean() == pytest.approx(run.tpot_mean_s, rel=1e-4)
        assert run.e2e_mean_s == pytest.approx(run.ttft_mean_s + 84 * run.tpot_mean_s, rel=1e-4)

    def test_zeros_of_a_run_that_failed_are_unknown(self):
        run = only("vllm_bench_serve_v0251_all_failed.json")
        assert (run.completed, run.failed, run.ttft_mean_s, run.output_len) == (0, 8, None, None)

    def test_sweep_keeps_its_parameter(self):
        assert [run.max_num_seqs for run in read("vllm_bench_sweep_v0251_summary.json")] == [8, 8]

    def test_printed_report_behind_progress_bars(self):
        run = only("vllm_bench_serve_stdout_minimax_h100_c8.log")
        assert (run.ttft_mean_s, run.tpot_mean_s, run.itl_mean_s) == pytest.approx((0.77122, 0.01076, 0.0136))
        assert (run.model, run.load_value) == ("/userdata/llms/MiniMax/MiniMax-M2.5", 8)
        assert run.req_s == 0.68
        assert run.completed_per_s == pytest.approx(1000 / 1472.72)  # more digits than were printed

    def test_server_metrics_beside_client_latencies(self):
        run = read("vllm_gptoss120b_h200_metrics_table.tsv")[0]
        assert (run.e2e_mean_s, run.output_tok_s, run.load) == (pytest.approx(6.9051), 510.7, None)


class TestSglang:
    def test_infinity_and_random_lengths(self):
        run = only("sglang_bench_serving_gh200_qwen25_3b_c32.jsonl")
        assert (run.load, run.load_value) == ("concurrency", 32)
        assert run.input_len == pytest.approx(264.97)  # asked for: 512
        assert run.e2e_mean_s == pytest.approx(0.5579127527959645)
        assert (run.version, run.tp, run.gpu_memory_utilization) == ("0.5.5.post3", 1, 0.9)


class TestAiperf:
    def test_units_beside_the_values(self):
        run = only("aiperf_profile_export_qwen_c1.json")
        assert (run.ttft_mean_s, run.e2e_mean_s) == pytest.approx((0.030814987671875, 3.6521454372343746))
        assert run.duration_s == pytest.approx(255.56017270100003)
        assert (run.load, run.load_value, run.model) == ("concurrency", 1, "Qwen/Qwen3-0.6B")

    def test_inter_token_latency_is_tpot(self):
        run = only("aiperf_profile_export_rtx5090_qwen36_35b_nvfp4_agent_c16.csv")
        assert (run.tpot_mean_s, run.itl_mean_s) == pytest.approx((0.01185, 0.01199))
        assert (run.completed, run.duration_s, run.load) == (96, 44.52, None)

    def test_thousands_separators_and_a_second_table(self):
        run = only("genai_perf_profile_excerpt.csv")
        assert (run.ttft_mean_s, run.e2e_p99_s) == pytest.approx((1.14631, 9.43613))
        assert (run.req_s, run.completed, run.input_len) == (1.5, 40, 3000.05)


class TestGuidellm:
    def test_milliseconds_and_seconds_in_one_report(self):
        run = read("guidellm_report_v2.json")[0]
        assert run.ttft_mean_s == pytest.approx(0.011481165885925293)
        assert run.e2e_mean_s == pytest.approx(0.01978909969329834)
        assert (run.load, run.load_value, run.arrival) == ("rate", 2.0, "constant")

    def test_its_time_per_output_token_is_not_tpot(self):
        run = read("guidellm_report_v2.json")[0]
        assert run.tpot_mean_s == pytest.approx(0.0011508464813232422)
        assert run.tpot_mean_s == pytest.approx((run.e2e_mean_s - run.ttft_mean_s) / 7, rel=0.05)


class TestInferencePerf:
    def test_seconds(self):
        run = only("inference_perf_stage3_lifecycle.json")
        assert (run.load, run.load_value, run.req_s) == ("rate", 92.19, 91.35730480202015)
        assert (run.ttft_p50_s, run.e2e_p99_s) == (0.04451845702715218, 1.380553821043577)

    def test_yaml(self):
        assert only("inference_perf_lifecycle.yaml").e2e_mean_s == 0.49

    def test_a_summary_of_stages_has_no_load(self):
        run = only("inference_perf_summary_lifecycle.json")
        assert run.load is None
        assert "several stages" in run.notes

    def test_llmd_report_names_its_units_and_stack(self):
        run = only("llmd_benchmark_report_v0_2_1_example.yaml")
        assert run.ttft_p99_s == 0.05029489721637218
        assert (run.gpu, run.n_gpus, run.tp) == ("NVIDIA-H100-80GB-HBM3", 16, 8)  # two replicas
        assert (run.load_value, run.inflight_cap, run.shared_prefix_tokens) == (10.0, None, 1000)


class TestLlmperf:
    def test_its_inter_token_latency_includes_the_first_token(self):
        run = only("llmperf_summary_anyscale_70b.json")
        assert (run.tpot_mean_s, run.itl_mean_s) == (None, None)
        assert run.ttft_p99_s == 0.4745305190600024
        assert run.req_s == pytest.approx(84.73327721639254 / 60)

    def test_fork_in_milliseconds_by_concurrency(self):
        runs = read("llmperf_fork_tgi_llama3_8b_summary.json")
        assert [run.load_value for run in runs] == [1, 2, 4, 8, 16, 32, 64, 128]
        assert runs[-1].ttft_mean_s == pytest.approx(17.327640365461037)


class TestTrtllmBench:
    def test_total_latency_in_seconds_and_all_at_once(self):
        run = only("trtllm_bench_throughput_stdout_v012.txt")
        assert (run.duration_s, run.output_tok_s, run.load) == (16.406100739, 23405.927228471104, "offline")
        assert run.output_tok_s == pytest.approx(run.req_s * run.output_len)  # "token throughput" is of answers
        assert (run.version, run.weight_dtype, run.kv_dtype) == ("0.12.0", "FP8", "FP8")

    def test_total_latency_in_milliseconds(self):
        run = only("trtllm_bench_throughput_stdout_v1x.txt")
        assert run.duration_s == pytest.approx(115.7169214)
        assert (run.ttft_mean_s, run.tpot_p50_s, run.e2e_mean_s) == pytest.approx((52.6670339, 0.2040463, 75.9034456))
        assert run.total_tok_s == 94022.5497


class TestLlamaBench:
    def test_prompt_and_generation_rows(self):
        prompt, generation = read("llama_bench_md_strix_halo_llama2_7b.log")
        assert (prompt.input_len, prompt.output_len, prompt.total_tok_s) == (512, 0, 1337.7)
        assert prompt.ttft_mean_s == pytest.approx(512 / 1337.7)
        assert generation.tpot_mean_s == pytest.approx(1 / 55.73)
        assert generation.weights_bytes == pytest.approx(3.56 * 2**30)
        assert (generation.gpu, generation.weight_dtype) == ("AMD Radeon 8060S Graphics (RADV GFX1151)", "Q4_0")

    def test_depth_is_the_context(self):
        runs = [run for run in read("llama_batched_bench_dgx_spark.md") if run.format == "llama-bench, Markdown"]
        deep = [run for run in runs if run.model == "gpt-oss 20B MXFP4 MoE"]
        assert [(run.input_len, run.context_len) for run in deep[2:3]] == [(2048, 4096)]  # pp2048 @ d4096
        assert (deep[3].input_len, deep[3].output_len, deep[3].output_tok_s) == (4096, 32, 79.22)  # tg32 @ d4096

    def test_curve(self):
        run = read("llama_bench_curve_strix_halo.csv")[1]
        assert (run.input_len, run.output_len, run.output_tok_s) == (8192, 128, 10.414957)

    def test_batched(self):
        run = read("llama_batched_bench_dgx_spark.md")[1]  # |   512 |     32 |    2 | ...
        assert (run.model, run.load, run.load_value) == ("ggml-org/gpt-oss-20b-GGUF", "batch", 2)
        assert (run.ttft_mean_s, run.e2e_mean_s, run.total_tok_s) == (0.230, 0.813, 1337.56)
        assert run.tpot_mean_s == pytest.approx(0.583 / 32)
        assert run.output_tok_s == pytest.approx(2 * 32 / 0.813)


class TestMlperf:
    def test_nanoseconds(self):
        run = only("mlperf_v51_mi300x_llama2_70b_server_summary.txt")
        assert (run.ttft_mean_s, run.tpot_p99_s) == pytest.approx((0.918456323, 0.193380124))
        assert run.e2e_mean_s == pytest.approx(43.579602295)
        assert (run.load, run.load_value, run.quality) == ("rate", 83.9, None)
        assert run.output_len == pytest.approx(24593.77 / 81.68)


class TestInferencex:
    def test_the_heading_says_milliseconds_and_means_seconds(self):
        run = read("inferencex_dashboard_export_gptoss120b.csv")[0]
        assert (run.tpot_mean_s, run.e2e_mean_s) == (0.0036954017349367417, 3.427704488183372)
        assert run.output_tok_s == pytest.approx(8 * 129.67588745445929)

    def test_an_export_that_means_milliseconds(self, tmp_path):
        text = (FILES / "inferencex_dashboard_export_gptoss120b.csv").read_text()
        head, row = text.splitlines()[3:5]
        cells = row.split(",")
        for index, column in enumerate(head.split(",")):
            if column.endswith("(ms)"):
                cells[index] = str(1e3 * float(cells[index]))
        path = tmp_path / "export.csv"
        path.write_text("\n".join([head, ",".join(cells)]))
        assert import_file(path)[0].tpot_mean_s == pytest.approx(0.0036954017349367417)

    def test_gpus_of_an_aggregated_row_are_its_tensor_parallel_size(self):
        run = read("inferencex_api_benchmarks_slice.json")[2]  # num_decode_gpu: 64 = 8 x 8
        assert (run.n_gpus, run.tp, run.ep, run.dp_attention) == (8, 8, 8, True)
        assert run.total_tok_s == pytest.approx(8 * 515.684617321858)
        assert run.tpot_mean_s == 0.027976202421423374


class TestTables:
    def test_rates_in_seconds_and_speed_of_one_request_is_no_throughput(self):
        run = read("custom_qps_summary_a100_qwen25_7b.csv")[-1]
        assert (run.load_value, run.e2e_mean_s, run.output_tok_s) == (50, 0.8649287464860826, None)

    def test_request_log_by_rate(self):
        runs = read("custom_request_log_rtx3090_qwen25_7b.csv")
        assert [(run.load, run.load_value, run.completed) for run in runs][:2] == [("rate", 1, 60), ("rate", 10, 600)]
        assert runs[0].requests.e2e_s[0] == 2.007760675624013
        assert runs[0].ttft_mean_s is None  # it did not stream

    def test_locust_latency_per_token(self):
        run = read("fwai_locust_summaries_rtx4090.md")[1]
        assert (run.ttft_mean_s, run.e2e_mean_s) == pytest.approx((0.3446080265000546, 4.7903946911666635))
        assert run.tpot_mean_s == pytest.approx((run.e2e_mean_s - run.ttft_mean_s) / (run.output_len - 1), rel=1e-4)

    def test_requests_are_replayed_and_counted_by_the_server(self):
        (run,) = import_file(SHARED / "data/requests/vllm0230_h100_qwen3-14b_sweep_rate__agg_2rps__vanilla.csv.gz")
        assert (run.load, run.completed, run.requests.input_tokens[0]) == ("trace", 1212, 1010)  # asked for: 1,024
        assert (run.requests.ttft_s[0], run.requests.arrival_s[0]) == pytest.approx((0.072784, 0.50609))

    def test_failed_requests_are_left_out(self):
        (run,) = import_file(SHARED / "data/requests/vllm0151_h100_llama-2-70b-hf-tp4-reasoning.csv.gz")
        assert (run.num_requests, run.completed, run.failed) == (4800, 3200, 1600)

    def test_deployments_in_one_log(self):
        runs = import_file(SHARED / "data/requests/vllm0190_sharegpt_rtx.csv")
        assert [run.gpu for run in runs] == ["RTX4090", "RTXPRO6000"]
        assert [(run.version, run.max_num_seqs) for run in runs] == [("0.19.0", 256), ("0.19.0", 128)]

    def test_steps(self):
        runs = import_file(SHARED / "data/steps/steps.csv.gz")
        assert sum(len(run.steps.step_s) for run in runs) == 12671
        assert (runs[0].steps.step_s[0], runs[0].steps.kv_tokens[0]) == pytest.approx((0.0884775, 1177))

    def test_static_batches(self):
        run = import_file(SHARED / "data/steps/splitwise_perf_model.csv")[0]
        assert (run.ttft_mean_s, run.tpot_mean_s) == pytest.approx((0.1962532192, 0.0548795119))

    def test_our_own_cases(self):
        runs = import_file(SHARED / "data/serving/cases.csv.gz")
        assert len(runs) == 12597
        first = runs[0]
        assert (first.case_id, first.n_gpus, first.load_value) == ("pub00015", 8, 4)
        assert (first.ttft_mean_s, first.e2e_mean_s) == pytest.approx((0.1899083, 8.1580197))
