import csv
import json
from dataclasses import asdict

import pytest

from calibration.__main__ import main
from calibration.cases.of_files import kind_of
from calibration.cases.of_run import case_of_run, with_assumptions
from calibration.experiment.of_case import experiment_of_case
from calibration.fitting.outcome import profile_yaml
from calibration.report import validation
from calibration.runs import Run
from calibration.suspicion import Flag
from calibration.validation.summary import summary_of_cases
from calibration.validation.validate import SHIPPED
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import EngineConstants

HEADER = (
    "case_id,engine,engine_version,gpu,n_gpus,tp,mode,model,weight_dtype,input_len,output_len,"
    "load_type,load_value,num_requests,ttft_mean_ms,tpot_mean_ms,output_tok_s,quality"
)
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
ROWS = [
    f"a,vllm,0.15.1,H100-SXM-80GB,1,1,agg,{MODEL},bf16,256,32,concurrency,4,8,40,7.5,500,ok",
    f"b,vllm,0.15.1,H100-SXM-80GB,1,1,agg,{MODEL},bf16,256,32,concurrency,4,8,44,7,480,ok",
    f"c,vllm,0.15.1,H100-SXM-80GB,1,1,disagg,{MODEL},bf16,256,32,concurrency,4,8,44,7,480,ok",
    f"d,vllm,0.15.1,L40S,1,1,agg,{MODEL},bf16,256,32,concurrency,1,3,44,22,45,ok",
]


@pytest.fixture
def cases(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


def validated(capsys, *arguments):
    assert main(["validate", *map(str, arguments), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_has_predictions_errors_and_reasons_by_case_and_statistics_by_group(cases, capsys):
    result = validated(capsys, cases)
    first, second, third, _ = result["cases"]
    assert first["predicted"] == second["predicted"]
    error = 100 * (first["predicted"]["ttft_mean_ms"] / 40 - 1)
    assert first["error_pct"]["ttft_mean_ms"] == pytest.approx(error)
    assert (third["skipped"], third["predicted"]) == ("how many accelerators prefill and decode is not stated", {})
    summary = result["summary"]
    assert summary["skipped"] == {"how many accelerators prefill and decode is not stated": {"n": 1}}
    assert summary["all"]["tpot_mean_ms"]["n"] == 3
    assert set(summary["gpu L40S"]["tpot_mean_ms"]) == {"n", "mape", "medape", "bias", "coverage"}
    assert result["cpu_s"] > 0


def test_runs_of_a_build_without_a_number_are_of_the_release_of_their_date(tmp_path, capsys):
    path = tmp_path / "cases.csv"
    rows = [f"{ROWS[0].replace('0.15.1', 'dev')},{date}" for date in ("2025-12-24", "2026-02-01")]
    path.write_text("\n".join([f"{HEADER},date", *rows]) + "\n")
    found = validated(capsys, path)["cases"]
    assert [case["assumed"][0] for case in found] == ["vllm 0.13 by date", "vllm 0.15 by date"]


def test_limit_and_where_choose_cases(cases, capsys):
    assert [case["case_id"] for case in validated(capsys, cases, "--limit", 2)["cases"]] == ["a", "b"]
    assert [case["case_id"] for case in validated(capsys, cases, "--where", "gpu=L40S")["cases"]] == ["d"]


def test_an_unknown_column_is_an_error_in_one_line(cases, capsys):
    assert main(["validate", str(cases), "--where", "card=L40S"]) == 2
    assert "'card' is no column of a case" in capsys.readouterr().err


def test_the_table_shows_groups_and_what_is_not_modelled(cases, capsys):
    assert main(["validate", str(cases)]) == 0
    shown = capsys.readouterr().out
    assert "vllm on L40S" in shown
    assert "1 of 4 cases is not modelled:" in shown


def test_one_run_is_shown_measured_beside_predicted(cases, capsys):
    assert main(["validate", str(cases), "--where", "case_id=a"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"a: {MODEL} on H100-SXM-80GB, vllm"
    assert lines[1].startswith("assumed: ")
    assert lines[2].split() == ["measured", "predicted", "90", "%", "interval", "error"]
    assert [line.split()[:2] for line in lines[3:5]] == [["ttft_mean_ms", "40"], ["tpot_mean_ms", "7.5"]]
    assert not any(line.startswith("group") for line in lines)


def test_files_are_told_apart_by_their_first_line(cases, tmp_path):
    logs = tmp_path / "logs.csv"
    logs.write_text("case,model,config_file,gpu,gpu_mem_gib,dtype_quant,vllm_version,status\n")
    other = tmp_path / "bench.json"
    other.write_text("{}")
    assert [kind_of(path) for path in (cases, logs, other)] == ["serving", "memory", "runs"]


def test_an_imported_run_is_a_case_once_the_accelerator_is_said():
    run = Run(
        file="bench.json",
        engine="vllm",
        version="0.15.1",
        model=MODEL,
        input_len=256.5,
        output_len=32.0,
        load="concurrency",
        load_value=4.0,
        num_requests=40,
        ttft_mean_s=0.040,
        tpot_mean_s=0.0075,
    )
    assumed = {"gpu": "H100-SXM-80GB", "tp": "1", "model": "another"}
    [case] = with_assumptions([case_of_run(run, 0)], assumed)
    assert case.measured == pytest.approx({"ttft_mean_ms": 40, "tpot_mean_ms": 7.5})
    experiment = experiment_of_case(case).experiment
    assert (experiment.deployment.gpu, experiment.workload.num_requests) == ("H100-SXM-80GB", 40)
    assert case.text("model") == MODEL


def test_bias_keeps_its_sign_and_coverage_counts_what_is_inside():
    entries = [
        {"engine": "e", "gpu": "g", "model": "m", "skipped": None, "error_pct": {"x": error}, "inside": {"x": held}}
        for error, held in ((-10.0, True), (30.0, False))
    ]
    found = summary_of_cases(entries)["e on g"]["x"]
    assert found == {"n": 2, "mape": 20.0, "medape": 20.0, "bias": 10.0, "coverage": 50.0}


def test_shipped_measurements_name_their_sources():
    rows = []
    for path in SHIPPED.glob("*.csv"):
        with path.open(newline="") as file:
            rows += list(csv.DictReader(file))
    assert 1000 <= len(rows) <= 2000
    assert all(row["source"] for row in rows)
    assert len({row["case_id"] for row in rows}) == len(rows)


def test_what_import_says_of_a_run_stands_below_its_line(tmp_path, capsys):
    path = tmp_path / "run.json"
    run = {"backend": "vllm", "model_id": MODEL, "num_prompts": 200, "request_rate": 16.0, "completed": 200}
    rates = {"duration": 28.0, "request_throughput": 7.1, "output_throughput": 1430.0, "mean_ttft_ms": 86.0}
    lengths = {"total_input_tokens": 41000, "total_output_tokens": 40000, "mean_tpot_ms": 33.0}
    path.write_text(json.dumps(run | rates | lengths))
    assert main(["import", str(path)]) == 0
    flags = [line.partition(": ")[2] for line in capsys.readouterr().out.splitlines() if " warning: " in line]
    assert any(flag.startswith("warning: offered_rate: ") for flag in flags)
    assert main(["validate", str(path), "--assume", "gpu=RTX-4090", "--assume", "tp=1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1 : 1 + len(flags)] == flags
    assert lines[1 + len(flags)].startswith("assumed: ")


def test_of_many_cases_doubts_are_counted_by_what_they_are():
    case = {"engine": "e", "gpu": "g", "model": "m", "skipped": None, "error_pct": {}, "inside": {}, "assumed": []}
    cases = [case | {"doubts": [asdict(Flag("offered_rate", "7 of 16: short"))]}] * 6 + [case | {"doubts": []}]
    shown = validation({"cases": cases, "summary": summary_of_cases(cases), "cpu_s": 0.2})
    assert "runs with doubts (python -m calibration import says which): offered_rate 6" in shown
    assert shown.endswith("less than 1 s of processor time\n")


def test_constants_of_ones_own_predict(cases, tmp_path, capsys):
    slow = {"host_per_iteration_s": Constant(value=0.015, bounds=(0, 1))}
    entry = EngineConstants(overlapped=False, constants=slow, fit=Fit(source="made up"))
    path = tmp_path / "own.yaml"
    path.write_text(profile_yaml("own", [entry], "made up", "vllm"))
    shipped, own = validated(capsys, cases), validated(capsys, cases, "--calibration", path)
    tpots = [result["cases"][0]["predicted"]["tpot_mean_ms"] for result in (shipped, own)]
    assert tpots[1] > tpots[0] + 10
    assert main(["validate", str(cases), "--calibration", str(tmp_path / "one.yaml")]) == 2
    assert "one.yaml: no such file (did you mean 'own.yaml'?)" in capsys.readouterr().err
