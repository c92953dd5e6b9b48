"""Input made to hurt: each gives one line, soon, and no traceback."""

import gzip
import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibration.importers import import_file
from calibration.reading import content
from sim.errors import TraceError

SERVE = {"num_prompts": 8, "completed": 8, "request_throughput": 1.0, "output_throughput": 16.0, "mean_ttft_ms": 20.0}


def refused(path):
    with pytest.raises(TraceError) as refusal:
        import_file(path)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        (" \n\t\n", "is empty"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 100_000, "nested too deeply"),
        (f'{{"completed": {"9" * 10_000}}}', "a number that is too long"),
        ('{"completed": 1,}', "is not JSON"),
        ('{"completed": 1, "dur', "is not JSON: Unterminated string starting at, where the file ends: is it cut"),
        ('{"completed": 1', "is it cut short?"),
        ('{"a": 1}', "no result of a known tool, but an object with the keys a"),
        ("x,y\n1,2\n", "but a table with the columns x, y"),
        ("nothing to see\n", "but a line of text"),
        ("key: [1, 2\nother: 3\n", "is not YAML"),
        ("key: !!python/object/apply:os.system ['true']\n", "tag"),
    ],
)
def test_what_is_no_benchmark(tmp_path, text, said):
    path = tmp_path / "x"
    path.write_text(text)
    assert said in refused(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mean_ttft_ms": "fast"}, "mean_ttft_ms: expected a number, got 'fast'"),
        ({"mean_ttft_ms": "216,4"}, "mean_ttft_ms: expected a number, got '216,4'"),
        ({"mean_ttft_ms": "0,125"}, "mean_ttft_ms: expected a number, got '0,125'"),
        ({"mean_ttft_ms": True}, "mean_ttft_ms: expected a number, got True"),
        ({"mean_ttft_ms": [1]}, "mean_ttft_ms: expected a number, got a list"),
        ({"mean_ttft_ms": -1}, "mean_ttft_ms: -1 is out of range"),
        ({"mean_ttft_ms": 1e300}, "out of range"),
        ({"mean_ttft_ms": float("inf")}, "out of range"),
        ({"completed": 10**400}, "completed: expected a number, got a very large number"),
        ({"completed": 1.5}, "completed: expected a whole number, got 1.5"),
        ({"model_id": {"a": 1}}, "model_id: expected a text, got keys and values"),
        ({"ttfts": [0.1, "x"], "output_lens": [1, 2]}, "ttfts: expected a list of numbers"),
        ({"ttfts": [0.1], "output_lens": [1], "itls": [0.1]}, "itls: expected a list of lists of numbers"),
        ({"ttfts": 3, "output_lens": [1]}, "ttfts: expected a list, got 3"),
    ],
)
def test_values_of_another_type(tmp_path, change, said):
    path = tmp_path / "x"
    path.write_text(json.dumps(SERVE | change))
    assert said in refused(path)


def test_nan_is_unknown(tmp_path):
    path = tmp_path / "x"
    path.write_text(json.dumps(SERVE | {"mean_ttft_ms": float("nan")}))
    assert import_file(path)[0].ttft_mean_s is None


def test_a_ragged_row_is_named_by_its_line(tmp_path):
    path = tmp_path / "x"
    path.write_text("arrival_s,output_tokens,e2e_ms\n0,5,10\n1,5\n")
    assert f"{path}:3: 2 cells below a header of 3" in refused(path)


def test_binary_and_missing_files(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"\x80\x81\x82")
    assert "is not UTF-8 text" in refused(path)
    assert "cannot be read" in refused(tmp_path / "missing")
    assert "cannot be read" in refused(tmp_path)
    assert "cannot be read" in refused("a\0b")


def test_gzip_bombs_and_broken_gzip(tmp_path, monkeypatch):
    monkeypatch.setattr(content, "MAX_BYTES", 1 << 20)
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(b" " * (50 << 20)))
    assert "is larger than 1 MiB" in refused(path)
    path.write_bytes(gzip.compress(b"abc")[:-4] + b"\0\0\0\0")
    assert "broken gzip" in refused(path)
    path.write_bytes(gzip.compress(json.dumps(SERVE).encode())[:-8])
    assert "a gzip file without its end" in refused(path)


@pytest.mark.parametrize("character", ["-", "|", " ", "a", "=", ": "])
def test_no_pattern_takes_quadratic_time(tmp_path, character):
    path = tmp_path / "x"
    line, title = character * 300_000, "============ Serving Benchmark Result ============"
    path.write_text(f"MLPerf Results Summary\n|a|\n{line}\n{title}\n{line}\n")
    begin = time.process_time()
    import_file(path)
    assert time.process_time() - begin < 2


@pytest.mark.parametrize("line", ["|--|\n", "{}\n", "|a|\n|-|\n\n", "Avg latency: 1 seconds\n", "a,b\n\n"])
def test_many_lines_take_linear_time(tmp_path, line):
    path = tmp_path / "x"
    path.write_text(line * 20_000)
    begin = time.process_time()
    try:
        import_file(path)
    except TraceError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017 - both outcomes are right
    assert time.process_time() - begin < 4


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
SHAPES = [
    SERVE,
    {"load_summary": {}, "successes": {"latency": {"request_latency": {"mean": 1}}}},
    {"benchmarks": [{"metrics": {"request_latency": {"successful": {"mean": 1}}}}]},
    {"request_latency": {"unit": "ms", "avg": 1}, "request_throughput": {"unit": "x", "avg": 1}, "input_config": {}},
    {"world_info": {}, "performance": {"total_latency_ms": 3}},
    {"isl": 1, "osl": 1, "conc": 1, "metrics": {"mean_tpot": 1}},
    {"n_prompt": 1, "n_gen": 0, "avg_ts": 3},
    {"pp": 1, "tg": 1, "pl": 1, "n_kv": 2, "t_pp": 0.1, "t_tg": 0.1, "t": 0.2, "speed": 10},
]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shape=st.sampled_from(SHAPES), index=st.integers(0, 8), value=JSON)
def test_any_value_in_any_place_is_read_or_refused(tmp_path, shape, index, value):
    key = list(shape)[index % len(shape)]
    path = tmp_path / "x"
    path.write_text(json.dumps(shape | {key: value}))
    try:
        import_file(path)
    except TraceError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017 - both outcomes are right
