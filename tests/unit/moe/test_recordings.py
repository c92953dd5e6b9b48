"""Recorded loads and maps: what is read, and what is refused in one line."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from sim.__main__ import main
from sim.errors import TraceError
from sim.moe.recordings import read_loads, read_map

MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]


def _write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_the_same_matrix_in_every_form(tmp_path):
    np.save(tmp_path / "a.npy", np.array(MATRIX))
    _write(tmp_path / "b.csv", "1,2,3\r\n\n4, 5, 6.5\n")
    _write(tmp_path / "c.json", json.dumps(MATRIX))
    _write(tmp_path / "d.json", json.dumps({"weight": MATRIX}))
    for name in ("a.npy", "b.csv", "c.json", "d.json"):
        assert read_loads(tmp_path / name).tolist() == MATRIX


def test_steps_are_summed_and_a_vector_is_one_layer(tmp_path):
    np.save(tmp_path / "steps.npy", np.array([MATRIX, np.zeros((2, 3)), MATRIX]))
    np.save(tmp_path / "one.npy", np.array([1, 2], dtype=np.uint16))
    assert read_loads(tmp_path / "steps.npy").tolist() == [[2, 4, 6], [8, 10, 13]]
    assert read_loads(tmp_path / "one.npy").tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", "1,2\n3\n", r"a.csv:2: 1 numbers where the first line has 2"),
        ("a.csv", "1,x\n", r"a.csv:1: numbers between commas"),
        ("a.csv", "", "shape"),
        ("a.csv", b"\xff\xfe\x00", "numbers between commas"),
        ("a.csv", "1,-2\n", "a load of -2"),
        ("a.csv", "1,nan\n", "a load of nan"),
        ("a.csv", "1,inf\n", "a load of inf"),
        ("a.json", "[[1,2],[3]]", "ragged"),
        ("a.json", "[[1,true]]", "something else than numbers"),
        ("a.json", '[[1,"2"]]', "something else than numbers"),
        ("a.json", "[[1,null]]", "something else than numbers"),
        ("a.json", "[[1, NaN]]", "a load of nan"),
        ("a.json", "[]", "shape"),
        ("a.json", "[[]]", "shape"),
        ("a.json", "[[[[1]]]]", "shape"),
        ("a.json", "7", "a list of layers"),
        ("a.json", "{}", "has none of logical_count"),
        ("a.json", "{", "is not JSON"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", "[[1" + "0" * 5000 + "]]", "is not JSON"),
        ("a.npy", b"\x93NUMPY garbage", "no .npy array"),
        ("a.npy", b"", "no .npy array"),
        ("a.xlsx", "", "loads are .json"),
    ],
)
def test_what_is_refused(tmp_path, name, content, reason):
    with pytest.raises(TraceError, match=reason) as caught:
        read_loads(_write(tmp_path / name, content))
    assert "\n" not in str(caught.value)


def test_a_pickle_is_never_loaded(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[print]]), allow_pickle=True)
    with pytest.raises(TraceError, match="no .npy array"):
        read_loads(tmp_path / "a.npy")


def test_a_header_that_claims_more_than_there_is(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }"
    content = b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header + b"\n" + bytes(64)
    with pytest.raises(TraceError, match="no .npy array"):
        read_loads(_write(tmp_path / "a.npy", content))


@pytest.mark.parametrize("file", ["missing.json", "missing.npy", "missing.csv"])
def test_the_command_says_it_in_one_line(tmp_path, capsys, file):
    assert main(["moe", "place", str(tmp_path / file), "--ranks", "2"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert "cannot be read" in shown.err


def test_maps_of_engines(tmp_path):
    yaml = "initial_global_assignments:\n  10: [1, 0]\n  3: [0, 1]\nnum_slots: 2\nlayer_updates_per_iter: 0\n"
    assert read_map(_write(tmp_path / "a.yaml", yaml)).tolist() == [[0, 1], [1, 0]]
    devices = [{"device_id": 1, "device_expert": [2, 0]}, {"device_id": 0, "device_expert": [0, 1]}]
    layers = {"moe_layer_count": 1, "layer_list": [{"layer_id": 0, "device_count": 2, "device_list": devices}]}
    assert read_map(_write(tmp_path / "a.json", json.dumps(layers))).tolist() == [[0, 1, 2, 0]]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.yaml", "initial_global_assignments: [1]", "is wanted"),
        ("a.yaml", "initial_global_assignments: {3: [0, -1]}", "counted from 0"),
        ("a.yaml", "initial_global_assignments: {3: [0, 1], 4: [0]}", "ragged"),
        ("a.json", '{"layer_list": [{"layer_id": 0}]}', "is wanted"),
        ("a.json", '{"physical_to_logical": [[0.5]]}', "expert numbers"),
        ("a.json", "[]", "neither"),
    ],
)
def test_maps_that_are_refused(tmp_path, name, content, reason):
    with pytest.raises(TraceError, match=reason):
        read_map(_write(tmp_path / name, content))


@pytest.mark.shared
def test_the_published_maps(shared_moe):
    assert read_map(shared_moe / "moe_vllm_ascend_expert_map_example.json").tolist() == [[7, 2, 0, 3, 5, 6, 1, 4, 7, 2]]


@pytest.fixture
def shared_moe():
    from conftest import SHARED

    return SHARED / "data" / "moe"


def test_what_sglang_records(tmp_path):
    counts = np.array([[[1, 0], [2, 0]], [[0, 0], [0, 0]], [[0, 3], [0, 4]]])  # a step of the buffer is unused
    np.savez(tmp_path / "stat.npz", logical_count=counts)
    assert read_loads(tmp_path / "stat.npz").tolist() == [[1, 3], [2, 4]]
    passes = {"records": [{"global_physical_count": [[1, 2, 3]]}] * 2, "last_physical_to_logical_map": [[0, 1, 0]]}
    assert read_loads(_write(tmp_path / "pass.json", json.dumps(passes))).tolist() == [[8, 4]]


def test_the_window_of_vllm(tmp_path):
    window, held = np.array([[[1, 2, 3]], [[4, 5, 6]]]), np.array([[1, 0, 1]])
    np.savez(tmp_path / "w.npz", expert_load_window=window, physical_to_logical_map=held)
    assert read_loads(tmp_path / "w.npz").tolist() == [[7, 14]]
    np.savez(tmp_path / "w.npz", expert_load_window=window)
    with pytest.raises(TraceError, match="without the map"):
        read_loads(tmp_path / "w.npz")
    np.savez(tmp_path / "w.npz", expert_load_window=window, physical_to_logical_map=held[:, :2])
    with pytest.raises(TraceError, match="a map of"):
        read_loads(tmp_path / "w.npz")


def test_torch_is_asked_for_tensors_only(tmp_path, monkeypatch):
    file, asked = _write(tmp_path / "a.pt", b"pickle"), {}
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        with pytest.raises(TraceError, match="install it"):
            read_loads(file)

    def load(path, **options):
        asked.update(options)
        return {"logical_count": np.array([[[1, 2]]])}

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(load=load))
    assert read_loads(file).tolist() == [[1, 2]]
    assert asked["weights_only"] is True


def _safetensors(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        raw = np.array(values, dtype="<i4").tobytes()
        header[name] = {"dtype": "I32", "shape": [len(values)], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    _write(path, len(text).to_bytes(8, "little") + text + data)


def test_statistics_of_tensorrt_llm(tmp_path):
    _write(tmp_path / "meta_info.json", '{"num_experts": 2, "num_experts_per_token": 1}')
    _safetensors(tmp_path / "rank0.safetensors", {"50_3": [1, 2], "50_10": [3, 4], "51_3": [10, 0]})
    _safetensors(tmp_path / "rank1.safetensors", {"50_3": [0, 5]})
    _safetensors(tmp_path / "cooccurrence_rank0.safetensors", {"50_3": [9, 9]})
    assert read_loads(tmp_path).tolist() == [[11, 7], [3, 4]]
    _write(tmp_path / "rank1.safetensors", b"12")
    with pytest.raises(TraceError, match="rank1"):
        read_loads(tmp_path)
    with pytest.raises(TraceError, match="without rankN"):
        read_loads(_empty(tmp_path / "empty"))


def _empty(folder):
    folder.mkdir()
    return folder


def test_routes_without_the_warm_up(tmp_path):
    rows = [{"type": "route", "layer": 2, "topk_ids": [0, 1]}] * 300
    rows += [{"type": "meta"}, {"layer": 2, "topk_ids": [3, 1]}, {"layer": 5, "topk_experts": [[0, 2], [2, 0], [1, 0]]}]
    file = _write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    assert read_loads(file).tolist() == [[0, 1, 0, 1], [3, 1, 2, 0]]
    for wrong in ('{"topk_ids": [-1]}', '{"topk_ids": 3}', '{"layer": 1e9, "topk_ids": []}', "{"):
        with pytest.raises(TraceError, match=r"a.jsonl:1"):
            read_loads(_write(tmp_path / "a.jsonl", wrong))


@pytest.mark.shared
def test_published_routes_of_qwen(shared_moe):
    """Published: max/mean 1.48, coefficient of variation 0.21 over 2,434 tokens of 60 experts."""
    loads = read_loads(shared_moe / "moe_routes_qwen15_moe_a27b_layer0_clean.jsonl")
    assert loads.shape == (1, 60)
    assert loads.tolist() == read_loads(shared_moe / "moe_counts_qwen15_moe_a27b_layer0.csv").tolist()
    assert loads.max() / loads.mean() == pytest.approx(1.48, abs=0.005)
    assert loads.std() / loads.mean() == pytest.approx(0.21, abs=0.005)
