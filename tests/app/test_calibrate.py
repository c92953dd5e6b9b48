"""The page Calibrate: real benchmark files, and files that mean harm."""

import gzip
import itertools
import json

import pytest
from conftest import SHARED
from pages import opened, settled

from calibration.__main__ import main
from calibration.validation.validate import SHIPPED

OUTPUTS = SHARED / "data" / "bench_outputs"
REAL = (
    "vllm_bench_serve_v0251.json",
    "guidellm_report_v2.json",
    "sglang_bench_serving_gh200_qwen25_3b_c32.jsonl",
    "llmperf_summary_anyscale_70b.json",
    "trtllm_bench_throughput_stdout_v1x.txt",
    "vllm_085_sharegpt_rtx4090_8b_16qps.json",
    "llama_bench_curve_strix_halo.csv",
    "genai_perf_profile_excerpt.csv",
    "mlperf_v51_mi300x_llama2_70b_server_summary.txt",
    "inference_perf_lifecycle.yaml",
)
ALIASES = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in itertools.pairwise("abcdefghi")
)
HOSTILE = {
    "bomb.json.gz": gzip.compress(b"0" * (65 << 20)),
    "large.json": b" " * (65 << 20),
    "binary.json": bytes(range(256)) * 100,
    "page.json": b"<!DOCTYPE html><html><head><title>404</title></head></html>",
    "aliases.yaml": ALIASES.encode(),
    "latin.csv": "engine,gpu,café\nvllm,H100,1\n".encode("latin-1"),
}


def _upload(page, *files):
    page.file_uploader[0].set_value([(name, content, "application/octet-stream") for name, content in files])
    return settled(page.run())


def test_a_first_visit_shows_measured_and_predicted_runs():
    page = opened(page="calibrate")
    assert page.header[0].value == "20 measured runs of vLLM on an H100, and what is predicted"
    assert page.query_params["page"] == "calibrate"
    assert {card.label for card in page.metric} == {"TTFT, median error", "TPOT, median error"}
    assert all(0 < float(card.value.rstrip(" %")) < 60 for card in page.metric)


@pytest.mark.shared
def test_ten_files_of_benchmark_tools_are_read():
    page = _upload(opened(page="calibrate"), *((name, (OUTPUTS / name).read_bytes()) for name in REAL))
    assert page.header[0].value.startswith("100 runs in your files")
    assert not page.error
    names = {case.partition("#")[0] for case in page.dataframe[0].value["case_id"]}
    assert names >= {name for name in REAL if name.startswith(("vllm", "guidellm"))}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_a_line(name):
    page = _upload(opened(page="calibrate"), (name, HOSTILE[name]))
    assert len(page.error) == 1
    assert page.error[0].value.startswith(name.removesuffix(".gz"))
    assert "\n" not in page.error[0].value
    assert "/" not in page.error[0].value.partition(":")[0]


def test_a_path_in_a_benchmark_file_is_not_opened():
    run = {"backend": "vllm", "model_id": "/etc/model.json", "num_prompts": 100, "request_rate": 1.0, "completed": 100}
    rates = {"duration": 100.0, "request_throughput": 1.0, "output_throughput": 100.0, "mean_ttft_ms": 50.0}
    tokens = {"total_input_tokens": 10000, "total_output_tokens": 10000, "mean_tpot_ms": 10.0}
    page = _upload(opened(page="calibrate"), ("run.json", json.dumps(run | rates | tokens).encode()))
    assert page.header[0].value == "1 run in your files, which does not contradict itself"
    assert list(page.dataframe[0].value["model"]) == [""]
    assert page.warning[0].value == "1 of 1 runs cannot be simulated: not stated: model, gpu, tp."


def test_constants_are_fitted_to_uploaded_runs_and_used_in_explore():
    header, *rows = (SHIPPED / "vllm_sharegpt_h100_pcie_rtx4090.csv").read_text().splitlines()
    chosen = [row for row in rows if "H100-PCIe" in row and "Llama-8B" in row][:3]
    page = _upload(opened(page="calibrate"), ("mine.csv", "\n".join([header, *chosen]).encode()))
    next(button for button in page.button if button.label == "Fit").click()
    settled(page.run())
    constants = next(table.value for table in page.dataframe if "constant" in table.value)
    assert "host_per_iteration_s" in set(constants["constant"])
    said = [line.value for line in page.markdown]
    assert "vllm: 3 runs fitted, 0 kept back" in said
    assert any(line.startswith("assumed: lengths are lognormal about the stated means in 3 of 3 runs") for line in said)
    assert len(page.get("plotly_chart")) == 4
    next(button for button in page.button if button.label == "Use them in Explore").click()
    assert page.run().success[0].value == "Explore now runs with `engine.calibration: my-vllm.yaml`."
    page.segmented_control[0].set_value("Explore")
    settled(page.run())
    assert "calibration: my-vllm.yaml" in page.text_area[0].value
    assert page.metric[0].value == "8"


def test_the_page_predicts_what_the_command_does_and_says_what_was_assumed(tmp_path, capsys):
    header, *rows = (SHIPPED / "vllm_sharegpt_h100_pcie_rtx4090.csv").read_text().splitlines()
    chosen = [row for row in rows if "H100-PCIe" in row and "Llama-8B" in row][:2]
    wrong = chosen[0].replace("H100-PCIe-80GB", "H1"), chosen[0].replace("Llama-8B", "No-1B")
    text = "\n".join([header, *chosen, *wrong])
    page = _upload(opened(page="calibrate"), ("mine.csv", text.encode()))
    (tmp_path / "mine.csv").write_text(text)
    assert main(["validate", str(tmp_path / "mine.csv"), "--format", "json"]) == 0
    cases = [case for case in json.loads(capsys.readouterr().out)["cases"] if case["skipped"] is None]
    each = page.dataframe[1].value
    assert list(each["run"]) == [case["case_id"] for case in cases]
    for column, key in (("TPOT predicted [ms]", "predicted"), ("TPOT measured [ms]", "measured")):
        shown = [float(cell.replace(",", "")) for cell in each[column]]
        assert shown == pytest.approx([case[key]["tpot_mean_ms"] for case in cases], rel=1e-3)
    assert page.caption[0].value.startswith("Assumed: lengths are lognormal about the stated means in 2 of 2 runs; ")
    assert page.warning[0].value == "2 of 4 runs cannot be simulated."
    reasons = [line.value for line in page.markdown if line.value.startswith("- 1: no ")]
    assert [reason[:14] for reason in reasons] == ["- 1: no hardwa", "- 1: no model "]


@pytest.mark.shared
def test_a_flag_names_its_file():
    name = "vllm_old_detailed_l40s_8b_fp8_c32.json"
    page = _upload(opened(page="calibrate"), (name, (OUTPUTS / name).read_bytes()))
    assert page.markdown[0].value.startswith(f"- {name}: few_requests: 100 requests")
