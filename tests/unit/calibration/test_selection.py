"""What ``--assume``, ``--where`` and folders choose, and how what means nothing is refused."""

import json
from dataclasses import fields

import pytest

from calibration.__main__ import main
from calibration.cases.columns import ARRAYS, ASSUMABLE, NAMES
from calibration.cases.of_run import case_of_run
from calibration.runs import Run

RUN = {
    "backend": "vllm",
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "num_prompts": 20,
    "completed": 20,
    "max_concurrency": 2,
    "duration": 10.0,
    "request_throughput": 2.0,
    "output_throughput": 64.0,
    "total_input_tokens": 5120,
    "total_output_tokens": 640,
    "mean_ttft_ms": 40.0,
    "mean_tpot_ms": 8.0,
}
SERVER = ("--assume", "gpu=H100-SXM-80GB", "--assume", "tp=1")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUN))
    return str(path)


def refusal(capsys, *arguments):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("command", ["validate", "fit"])
@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--assume", "gpuu=L40S", "--assume: 'gpuu' is no column of a case (did you mean 'gpu'"),
        ("--assume", "version=0.19", "--assume: 'version' is no column of a case (did you mean 'engine_version'"),
        ("--assume", "ttft_mean_ms=3", "--assume: 'ttft_mean_ms' changes no prediction; what may be assumed: engine, "),
        ("--assume", "tp=two", "--assume: tp: expected a whole number from 1, got 'two'"),
        ("--assume", "engine_version=new", "--assume: engine_version: expected a version such as 0.19, got 'new'"),
        ("--assume", "gpu=", "--assume: gpu: expected a text, got ''"),
        ("--assume", "gpu", "--assume: 'gpu' is not COLUMN=VALUE"),
        ("--assume", "engine=sglang", "--assume: engine=sglang fills no cell, since all say their own: vllm"),
        ("--where", "gpuu~=H100", "--where: 'gpuu' is no column of a case (did you mean 'gpu'"),
        ("--where", "load_value=3", "--where: no case has load_value=3; they have 2"),
        ("--where", "model=meta-llama/Llama-3.1-8B", "(did you mean 'meta-llama/Llama-3.1-8B-Instruct'?)"),
    ],
)
def test_a_name_or_value_that_no_case_has_is_refused(command, option, value, message, file, capsys):
    assert message in refusal(capsys, command, file, option, value)


def test_every_column_of_a_case_has_a_name_and_what_may_be_assumed_is_one_of_them():
    values = {field.name: 1 for field in fields(Run) if field.name not in ARRAYS}
    assert set(case_of_run(Run(**values), 0).row) <= set(NAMES)
    assert set(ASSUMABLE) <= set(NAMES)


def test_part_of_a_cell_and_columns_of_ones_own_choose_too(tmp_path, capsys):
    header = "case_id,engine,engine_version,gpu,tp,model,input_len,output_len,load_type,load_value,team,tpot_mean_ms"
    row = "vllm,0.15.1,H100-SXM-80GB,1,meta-llama/Llama-3.1-8B-Instruct,64,8,concurrency,1"
    path = tmp_path / "cases.csv"
    path.write_text(f"{header}\na,{row},red,7\nb,{row},blue,7\n")
    for condition in ("team=blue", "case_id~=b"):
        assert main(["validate", str(path), "--format", "json", "--where", condition]) == 0
        assert [case["case_id"] for case in json.loads(capsys.readouterr().out)["cases"]] == ["b"]


def test_what_is_assumed_of_a_case_chooses_it_too(tmp_path, capsys):
    header = "case_id,engine,engine_version,gpu,tp,model,input_len,output_len,load_type,load_value,tpot_mean_ms"
    runs = [f"vllm,0.15.1,H100-SXM-80GB,{tp},meta-llama/Llama-3.1-8B-Instruct,64,8,concurrency,1,7" for tp in ("", 1)]
    path = tmp_path / "cases.csv"
    path.write_text(f"{header}\na,{runs[0]}\nb,{runs[1]}\n")
    choice = ("--assume", "tp=2", "--where", "tp=2")
    assert main(["validate", str(path), "--format", "json", *choice]) == 0
    assert [case["case_id"] for case in json.loads(capsys.readouterr().out)["cases"]] == ["a"]


def test_of_a_folder_all_files_are_read_that_hold_measurements(file, tmp_path, capsys):
    (tmp_path / "README.md").write_text("how it was run\n")
    (tmp_path / ".hidden.json").write_text("{")
    assert main(["validate", str(tmp_path), "--format", "json", *SERVER]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)["cases"]) == 1
    assert err.startswith(f"left out: {tmp_path}/README.md: holds no result of a known tool")
    assert main(["import", str(tmp_path), "--format", "json"]) == 2
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 1


@pytest.mark.parametrize("command", ["import", "validate", "fit"])
def test_a_folder_without_files_is_refused(command, tmp_path, capsys):
    assert refusal(capsys, command, str(tmp_path)) == f"error: {tmp_path}: there is no file in this folder\n"


def test_a_folder_without_measurements_is_refused(tmp_path, capsys):
    (tmp_path / "package.json").write_text('{"name": "thing"}')
    assert main(["fit", str(tmp_path)]) == 2
    assert f"error: {tmp_path}: no file in this folder holds measurements\n" in capsys.readouterr().err


def test_a_number_of_cases_is_one_at_least(file, capsys):
    with pytest.raises(SystemExit) as end:
        main(["validate", file, "--limit", "-1"])
    assert end.value.code == 2
    assert "'-1' is no number of cases, at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("there/fit.yaml", "cannot write: there is no folder"),
        ("folder.yaml", "cannot write: it is a folder"),
        ("fit.html", "the name of a profile ends in .yaml or .yml"),
    ],
)
def test_where_a_fit_cannot_be_written_nothing_is_computed(output, message, file, tmp_path, capsys):
    (tmp_path / "folder.yaml").mkdir()
    assert message in refusal(capsys, "fit", file, "-o", str(tmp_path / output))


def test_a_model_that_is_a_place_on_the_server_is_said_by_assume(tmp_path, capsys):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(RUN | {"model_id": "/models/llama"}))
    assert main(["validate", str(path), *SERVER]) == 0
    assert "'/models/llama' is where a model lay, not which one it is; if you know: --assume" in capsys.readouterr().out
    assert main(["validate", str(path), *SERVER, "--assume", f"model={RUN['model_id']}"]) == 0
    assert f"run.json#0: {RUN['model_id']} on H100-SXM-80GB, vllm\n" in capsys.readouterr().out
