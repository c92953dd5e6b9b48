import hashlib
import json
import math

import pytest
from handmade import context_of, two_answers

from sim.errors import UserError
from sim.metrics.summary import summarise
from sim.report.files import manifest_of, writable_folder, write_run

NAMES = {
    *("result.json", "manifest.json", "trace.perfetto.json"),
    *("requests.parquet", "strides.parquet", "timeline.parquet"),
}


def write(folder):
    requests, strides = two_answers()
    summary = summarise(requests, strides, context_of(num_gpus=1, kv_blocks=20))
    return write_run(folder, summary, requests, strides, kv_blocks=[20], manifest=manifest_of(7, {}))


def test_all_files_of_the_contract_and_nothing_else(tmp_path):
    paths = write(writable_folder(tmp_path / "a" / "b"))
    assert {path.name for path in paths} == NAMES
    assert {path.name for path in (tmp_path / "a" / "b").iterdir()} == NAMES


def test_requests_in_the_order_of_the_workload(tmp_path):
    from pyarrow import parquet

    write(tmp_path)
    table = parquet.read_table(tmp_path / "requests.parquet")
    assert table.column_names == [
        *("request_id", "arrival_s", "input_tokens", "output_tokens", "cached_tokens", "replica"),
        *("ttft_s", "tpot_s", "e2e_s", "queue_s", "preemptions", "status", "class", "tenant"),
    ]
    first, _, third = table.to_pylist()
    assert first == {
        "request_id": "0",
        "arrival_s": 1.0,
        "input_tokens": 100,
        "output_tokens": 3,
        "cached_tokens": 0,
        "replica": 0,
        "ttft_s": 0.5,
        "tpot_s": 0.375,
        "e2e_s": 1.25,
        "queue_s": 0.0,
        "preemptions": 0,
        "status": "completed",
        "class": "",
        "tenant": "",
    }
    assert (third["status"], third["output_tokens"], third["ttft_s"]) == ("rejected", 9, None)


def test_strides_and_timeline_can_be_read_back(tmp_path):
    from pyarrow import parquet

    write(tmp_path)
    strides = parquet.read_table(tmp_path / "strides.parquet").to_pydict()
    assert strides["iterations"] == [1, 1, 1, 2]
    assert "odd_gaps_s" not in strides
    timeline = parquet.read_table(tmp_path / "timeline.parquet")
    assert timeline.column_names == ["time_s", "replica", "running", "waiting", "kv_utilization", "output_tok_s"]
    assert json.loads((tmp_path / "result.json").read_text())["total_output_tokens"] == 7


def test_equal_runs_give_equal_bytes(tmp_path):
    first, second = (
        {path.name: path.read_bytes() for path in write(writable_folder(tmp_path / name))} for name in "ab"
    )
    assert first == second


def test_the_manifest_names_versions_seed_and_hashes(tmp_path):
    profile = tmp_path / "H100.yaml"
    profile.write_text("memory: 80 GiB\n")
    manifest = manifest_of(7, {"hardware": profile})
    assert manifest["seed"] == 7
    assert manifest["profiles"] == {"hardware": hashlib.sha256(b"memory: 80 GiB\n").hexdigest()}
    assert {"python", "servecast", "numpy"} <= set(manifest["versions"])


def test_a_folder_that_cannot_be_is_refused_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file: is a file, a folder is needed$") as refusal:
        writable_folder(tmp_path / "file")
    assert "\n" not in str(refusal.value)


def test_a_failed_write_leaves_what_was_there(tmp_path):
    (tmp_path / "requests.parquet").mkdir()  # nothing can take its place
    with pytest.raises(UserError, match="cannot write"):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["requests.parquet"]


def test_no_number_is_written_as_nan(tmp_path):
    write(tmp_path)
    values = json.loads((tmp_path / "result.json").read_text(), parse_constant=math.isfinite)
    assert values["wall_s"] is None
