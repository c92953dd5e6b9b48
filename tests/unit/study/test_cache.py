import hashlib
import json
import shutil
from pathlib import Path

import pytest
from small_study import sweep_of, write

import sim
from sim.experiment import load_experiment
from sim.profiles import library
from sim.simulate import simulate
from sim.simulate.inputs import _hash, file_hash, input_files
from sim.study import key as key_module
from sim.study.cache import Cache, default_folder
from sim.study.key import Keys

OUTCOME = {"status": "ok", "error": None, "duration": 0.1 + 0.2, "completed": 3, "warnings": ["a"]}
KEY = "ab" * 32


def test_what_is_put_is_got_to_the_last_bit(tmp_path):
    cache = Cache(tmp_path)
    assert cache.get(KEY) is None
    cache.put(KEY, OUTCOME)
    assert Cache(tmp_path).get(KEY) == OUTCOME


@pytest.mark.parametrize("status", ["failed", "lost", "invalid"])
def test_what_may_pass_is_not_kept(tmp_path, status):
    Cache(tmp_path).put(KEY, {"status": status, "error": "out of memory"})
    assert Cache(tmp_path).get(KEY) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"status": "failed"}', '"ok"'])
def test_a_damaged_entry_is_no_entry(tmp_path, content):
    cache = Cache(tmp_path)
    cache.put(KEY, OUTCOME)
    (entry,) = tmp_path.rglob("*.json")
    entry.write_text(content)
    assert cache.get(KEY) is None


def test_a_folder_that_cannot_be_used_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    for cache in (Cache(tmp_path / "file"), Cache(None)):
        cache.put(KEY, OUTCOME)
        assert cache.get(KEY) is None


def test_where_it_lies(monkeypatch, tmp_path):
    for name in ("SERVECAST_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "servecast"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert default_folder() == tmp_path / "x" / "servecast"
    monkeypatch.setenv("SERVECAST_CACHE", str(tmp_path / "y"))
    assert default_folder() == tmp_path / "y"


def test_nobody_has_a_home(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    for name in ("SERVECAST_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert default_folder() is None


def test_a_second_sweep_runs_nothing_and_gives_the_same_table(tmp_path):
    path, cache = write(tmp_path), tmp_path / "cache"
    first, left = sweep_of(path, tmp_path / "a", cache=cache)
    assert left == 6
    second, left = sweep_of(path, tmp_path / "b", cache=cache)
    assert (second, left) == (first, 0)
    assert (tmp_path / "a" / "sweep.parquet").read_bytes() == (tmp_path / "b" / "sweep.parquet").read_bytes()


ROOFLINE = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
workload: {arrivals: {kind: poisson, rate: 4}, lengths: {kind: preset, name: chat}, num_requests: 20}
"""


def key_of(path, *overrides):
    return Keys().of(load_experiment(path, overrides))


@pytest.fixture
def own_profiles(tmp_path):
    """Put an experiment beside profiles of its own, and return it."""
    path = tmp_path / "exp.yaml"
    path.write_text(ROOFLINE)
    for file in input_files(load_experiment(path)).values():
        root = next(parent for parent in file.parents if parent.name == "profiles")
        copy = tmp_path / "profiles" / file.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    return path


@pytest.mark.parametrize(
    "role", ["model", "hardware", "engine", "calibration", "engine constants", "errors", "lengths"]
)
def test_a_changed_profile_changes_the_key(own_profiles, role):
    before = key_of(own_profiles)
    file = input_files(load_experiment(own_profiles))[role]
    assert own_profiles.parent in file.parents
    file.write_text(file.read_text() + "\n# another number\n")
    assert key_of(own_profiles) != before


def test_an_accelerator_may_be_called_by_another_name(own_profiles):
    experiment = load_experiment(own_profiles, ["deployment.gpu=H100"])
    assert input_files(experiment) == input_files(load_experiment(own_profiles))
    assert Keys().of(experiment)


@pytest.mark.parametrize(
    "override",
    [
        *("seed=2", "workload.arrivals.rate=5", 'engine.version="0.18"', "stride=off"),
        *("slo={ttft_p95: 2 s}", "prices.gpu_hour_usd=2"),
    ],
)
def test_a_changed_field_changes_the_key(own_profiles, override):
    assert key_of(own_profiles, override) != key_of(own_profiles)


@pytest.mark.parametrize("override", ["name=other", "sweep={seed: [1, 2]}", "stride=on"])
def test_a_name_a_sweep_and_a_default_do_not(own_profiles, override):
    other = shutil.copy(own_profiles, own_profiles.with_name("other.yaml"))
    assert key_of(other, override) == key_of(own_profiles)


def test_a_changed_program_changes_the_key(own_profiles, monkeypatch, tmp_path):
    package = tmp_path / "sim"
    shutil.copytree(Path(sim.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(key_module, "_program", key_module._program.__wrapped__)
    before = key_of(own_profiles)
    monkeypatch.setattr(sim, "__file__", str(package / "__init__.py"))
    assert key_module._program() == key_module._program()
    source = package / "cost" / "pace.py"
    with source.open("a") as file:
        file.write("# a changed constant\n")
    monkeypatch.setattr(library, "folders", lambda kind, beside: [own_profiles.parent / "profiles" / kind])
    assert key_of(own_profiles) != before


def test_a_changed_trace_changes_the_key(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("arrival_s,input_tokens,output_tokens\n0,10,5\n1,10,5\n")
    path = tmp_path / "exp.yaml"
    path.write_text(ROOFLINE[: ROOFLINE.index("workload")] + "workload: {arrivals: {kind: trace, path: trace.csv}}\n")
    before = key_of(path)
    trace.write_text("arrival_s,input_tokens,output_tokens\n0,10,5\n1,10,6\n")
    assert key_of(path) != before


EXPERIMENTS = {
    "roofline": [],
    "affine": ["cost_model={kind: affine, base_s: 0.01, per_token_s: 0, per_context_token_s: 0}"],
    "relative": ["deployment.gpu=Mine"],
    "diurnal": ["workload.arrivals={kind: diurnal, rate: 4, profile: reasoning}"],
    "trace": ["workload={arrivals: {kind: trace, path: rag.jsonl}, num_requests: 5}"],
    "checkpoint": ["model=checkpoint"],
}
RAG = {"timestamp": 0, "input_length": 20, "output_length": 5, "session_id": "a", "hash_ids": {"sys_prompt": [1]}}


@pytest.mark.parametrize("overrides", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_every_file_that_a_run_reads_is_in_the_key(tmp_path, monkeypatch, overrides):
    path = tmp_path / "exp.yaml"
    path.write_text(ROOFLINE)
    (tmp_path / "rag.jsonl").write_text(json.dumps(RAG) + "\n")
    (tmp_path / "1_sys.jsonl").write_text('{"id": 1, "token_length": 8}\n')
    checkpoint(tmp_path / "checkpoint")
    relative_of_l40s(tmp_path / "profiles")
    experiment = load_experiment(path, overrides)
    library._read.cache_clear()
    read = opened(monkeypatch, lambda: simulate(experiment))
    key_module._program()
    covered = opened(monkeypatch, lambda: Keys().of(experiment), forget_hashes=True)
    assert read
    assert read <= covered


def opened(monkeypatch, action, forget_hashes=False):
    """Return the files that *action* opens, compiled code aside."""
    found = set()

    def noted(path, *arguments, **options):
        found.add(path.resolve())
        return original(path, *arguments, **options)

    if forget_hashes:
        _hash.cache_clear()
    original = Path.open
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", noted)
        action()
    return found


def relative_of_l40s(profiles):
    for kind in ("hardware", "calibrated/hardware"):
        (profiles / kind).mkdir(parents=True)
    hardware = library.find("hardware", "L40S").read_text().replace("name: L40S", "name: Mine")
    (profiles / "hardware" / "Mine.yaml").write_text(hardware)
    calibration = "name: Mine\nsources: {all: a guess}\ntransferred_from: L40S\n"
    (profiles / "calibrated" / "hardware" / "Mine.yaml").write_text(calibration)


def checkpoint(folder):
    folder.mkdir()
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "num_key_value_heads": 2,
        "vocab_size": 128,
        "max_position_embeddings": 8192,
        "torch_dtype": "bfloat16",
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config))


def test_of_safetensors_only_the_header_is_read(tmp_path):
    header = b'{"a": {"data_offsets": [0, 8]}}'
    start = len(header).to_bytes(8, "little") + header
    shard = tmp_path / "model.safetensors"
    shard.write_bytes(start + b"weights.")
    assert file_hash(shard) == hashlib.sha256(start).hexdigest()
