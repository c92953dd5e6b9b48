"""`trace inspect` and `trace convert` on small files."""

import gzip
import json

import pytest

from sim.errors import TraceError
from sim.report.traces import as_json, as_table, convert, inspect, shared_token_share
from sim.workload.traces import TraceRow, read_trace

TRACE = """\
{"arrival_s": 0, "input_tokens": 100, "output_tokens": 10, "segments": [["sys", 60], ["a", 40]], "session_id": "s"}
{"arrival_s": 1, "input_tokens": 200, "output_tokens": 30, "segments": [["sys", 60], ["b", 140]]}
{"arrival_s": 4, "input_tokens": 300, "output_tokens": 20, "segments": [["sys", 60], ["a", 40], ["c", 200]],\
 "session_id": "s", "turn": 1, "think_s": 2.5, "class": "chat", "ttft_ms": 70.0}
"""


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text(TRACE)
    return path


def test_inspect(trace):
    summary = inspect(trace)
    assert (summary.format, summary.requests, summary.failed) == ("canonical", 3, 0)
    assert (summary.span_s, summary.rate_per_s) == (4.0, 0.75)
    assert summary.interarrival_cv == pytest.approx(0.5)  # gaps 1 and 3: deviation 1, mean 2
    assert (summary.input_tokens.mean, summary.input_tokens.p50, summary.input_tokens.max) == (200, 200, 300)
    assert (summary.output_tokens.mean, summary.output_tokens.p50) == (20, 20)
    assert summary.shared_prefix_share == pytest.approx((60 + 100) / 600)
    assert (summary.sessions, summary.follow_ups, summary.measured) == (1, 1, True)


def test_inspect_as_json_has_no_nan(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("arrival_s,input_tokens,output_tokens\n5,1,1\n")
    summary = as_json(inspect(path))
    assert (summary["rate_per_s"], summary["interarrival_cv"], summary["span_s"]) == (None, None, 0.0)
    assert json.loads(json.dumps(summary, allow_nan=False))["input_tokens"]["p99"] == 1.0


def test_inspect_as_table(trace):
    table = as_table(inspect(trace))
    assert "prompt tokens shared with an earlier prompt" in list(table.columns[0].cells)
    assert "26.7%" in list(table.columns[1].cells)


def shared(*prompts):
    return shared_token_share(TraceRow(0.0, tokens, 1, segments=segments) for tokens, *segments in prompts)


def test_shared_tokens_are_counted_from_the_beginning_only():
    # The second prompt shares 5 of a, not b, since that follows a different beginning.
    assert shared((20, ("a", 10), ("b", 10)), (15, ("a", 5), ("b", 10))) == pytest.approx(5 / 35)
    # A longer piece of the same name shares what was there, and nothing behind it.
    assert shared((10, ("a", 10)), (25, ("a", 15), ("b", 10)), (25, ("a", 15), ("b", 10))) == pytest.approx(35 / 60)
    assert shared((10,), (10,)) == 0.0


def test_convert_and_read_again(trace, tmp_path):
    target = tmp_path / "out.jsonl"
    assert convert(trace, target) == 3
    assert [json.loads(line)["arrival_s"] for line in target.read_text().splitlines()] == [0.0, 1.0, 4.0]
    assert repr(read_trace(target)) == repr(read_trace(trace))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_convert_to_gzip_is_reproducible(trace, tmp_path):
    first, second = tmp_path / "a.jsonl.gz", tmp_path / "b.jsonl.gz"
    convert(trace, first)
    convert(trace, second)
    assert first.read_bytes() == second.read_bytes()
    assert len(gzip.decompress(first.read_bytes()).splitlines()) == 3


def test_a_bad_trace_leaves_no_file(tmp_path):
    (tmp_path / "bad.csv").write_text("arrival_s,input_tokens,output_tokens\n0,1,x\n")
    with pytest.raises(TraceError, match=r"bad\.csv:2: output_tokens"):
        convert(tmp_path / "bad.csv", tmp_path / "out.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.csv"]


def test_a_target_that_cannot_be_written(trace, tmp_path):
    with pytest.raises(TraceError, match="cannot be written: No such file or directory"):
        convert(trace, tmp_path / "nowhere" / "out.jsonl")


def test_convert_leaves_nothing_behind_where_it_cannot_write(trace, tmp_path):
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(TraceError, match="cannot be written: Is a directory"):
        convert(trace, tmp_path / "folder")
    assert sorted(tmp_path.iterdir()) == before
