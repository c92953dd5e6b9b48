"""Engines: what a version inherits, and defaults against the engines' own source text."""

from pathlib import Path

import pytest

from sim.errors import ProfileError
from sim.profiles.engine import Engine, EngineVersion, split_version
from sim.profiles.folders import names
from sim.profiles.library import load_engine, load_hardware
from sim.profiles.quantization import Quantization

VLLM = load_engine("vllm")


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ("0.4.3", "0.4"),
        ("0.5.5", "0.4"),
        ("0.6.6.post1", "0.6.5"),
        ("v0.8.5", "0.8"),
        ("0.10.2", "0.9"),
        ("0.11.0", "0.11"),
        ("0.15.1", "0.15"),
        ("0.19", "0.19"),
        ("0.19.1", "0.19"),
        ("0.22.0", "0.21"),
        ("0.26.1rc1", "0.26"),
        ("0.33.2", "0.33"),
        ("latest", "0.33"),
    ],
)
def test_a_version_is_the_newest_that_is_not_newer(version: str, since: str):
    assert VLLM.at(version).since == since


@pytest.mark.parametrize("version", ["0.1", "0.34", "1.0", "0", "", "main"])
def test_an_unknown_version_names_the_known_range(version: str):
    with pytest.raises(ProfileError) as caught:
        VLLM.at(version)
    assert str(caught.value) == f"vllm has no version {version!r}: known are 0.2 to 0.33, and 'latest'"


def test_an_engine_and_its_version_in_one_word():
    assert split_version("vllm@0.19") == ("vllm", "0.19")
    assert split_version("vllm") == ("vllm", "latest")
    assert split_version("vllm@") == ("vllm", "latest")


@pytest.mark.parametrize(
    ("version", "gpu", "offline", "expected"),
    [  # vllm==VERSION: vllm/engine/arg_utils.py
        ("0.8", "A100-SXM-80GB", False, (1024, 8192)),
        ("0.9", "A100-SXM-80GB", False, (256, 2048)),
        ("0.19", "H100", False, (1024, 8192)),
        ("0.19", "H100", True, (1024, 16384)),
        ("0.19", "L40S", False, (256, 2048)),
        ("0.19", "L40S", True, (256, 8192)),
        ("0.27", "B200", False, (1024, 8192)),
        ("0.29", "B200", False, (1024, 16384)),
        ("0.29", "MI300X", False, (1024, 16384)),
        ("0.31", "DGX-Spark", False, (1024, 8192)),
        ("0.33", "DGX-Spark", False, (256, 2048)),
    ],
)
def test_vllm_limits_by_version_accelerator_and_usage(version: str, gpu: str, offline: bool, expected: tuple[int, int]):
    assert VLLM.at(version).limits_on(load_hardware(gpu), offline=offline) == expected


def test_vllm_v0_batches_cover_the_longest_prompt():
    """vllm==0.4.3: config.py: max(max_model_len, 2048)."""
    v0, h100 = VLLM.at("0.4.3"), load_hardware("H100")
    assert v0.limits_on(h100, max_model_len=32768) == (256, 32768)
    assert v0.limits_on(h100, max_model_len=512) == (256, 2048)
    assert VLLM.at("0.19").limits_on(h100, max_model_len=32768) == (1024, 8192)


@pytest.mark.parametrize(
    ("field", "before", "after", "changed_in"),
    [
        ("scheduler", "continuous", "chunked_prefill", "0.8"),
        ("prefix_caching", False, True, "0.8"),
        ("cache_generated", False, True, "0.8"),
        ("gpu_memory_utilization", 0.90, 0.92, "0.20"),
    ],
)
def test_vllm_defaults_change_once(field: str, before: object, after: object, changed_in: str):
    values = {version.since: getattr(version, field) for version in VLLM.versions}
    first = list(values).index(changed_in)
    assert set(list(values.values())[:first]) == {before}
    assert set(list(values.values())[first:]) == {after}


def test_vllm_overlaps_its_host_time_from_014():
    """vllm==0.13.0, 0.14.1: config/scheduler.py: async_scheduling."""
    assert [VLLM.at(version).host.overlapped for version in ("0.13", "0.14", "0.23")] == [False, True, True]


def test_a_version_states_only_what_it_changes():
    older, newer = VLLM.at("0.21"), VLLM.at("0.23")
    assert newer.host.per_iteration_s == pytest.approx(0.95e-3)
    assert newer.host.overlapped is True, "inherited from 0.14"
    assert newer.batch_limits == older.batch_limits
    assert newer.memory == older.memory


_OPTIONAL = {"mxfp4_activations", "graphs", "fp8_inputs_fused", "batch_expansion", "decides_ahead"}


@pytest.mark.parametrize("name", names("engines"))
def test_every_number_has_a_source(name: str):
    engine = load_engine(name)
    numbers = set(EngineVersion.model_fields) - {"since", "sources"}
    for version in engine.versions:
        optional = _OPTIONAL - set(version.sources)
        stated = numbers - {field for field in optional if not getattr(version, field)}
        assert set(version.sources) == stated, f"{name} {version.since}"


@pytest.mark.parametrize("name", names("engines"))
def test_every_engine_has_a_latest_version_with_limits_everywhere(name: str):
    latest = load_engine(name).at("latest")
    for gpu in names("hardware"):
        sequences, tokens = latest.limits_on(load_hardware(gpu))
        assert sequences >= 1
        assert tokens >= 256


def engine(tmp_path: Path, versions: str) -> Engine:
    folder = tmp_path / "profiles" / "engines"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(f"name: mine\nsources: {{all: made up}}\nversions:\n{versions}")
    return load_engine("mine", tmp_path)


COMPLETE = """\
  - since: "1"
    sources: {}
    scheduler: static
    batch_limits: [{max_num_seqs: 8, max_num_batched_tokens: 512}]
    block_size: 16
    prefix_caching: false
    cache_generated: false
    gpu_memory_utilization: null
    memory: {kind: slots, context_bytes: 1 GiB, margin_bytes: 1 GiB}
    host: {per_iteration_s: 1 ms, per_sequence_s: 0, per_prefill_s: 0, overlapped: false}
    request_delay: {fixed_s: 0, per_prompt_token_s: 0}
"""


def test_an_own_engine_without_a_newest_release_takes_any_later_one(tmp_path: Path):
    mine = engine(tmp_path, COMPLETE)
    assert mine.at("99").since == "1"
    with pytest.raises(ProfileError, match=r"^mine has no version '0\.9': known are 1 on, and 'latest'$"):
        mine.at("0.9")


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ('  - since: "1"\n', "mine.yaml:4: versions.0: missing key 'sources'"),
        (
            COMPLETE + '  - since: "2"\n    blocksize: 32\n',
            "mine.yaml:16: versions.1.blocksize: unknown key 'blocksize' (did you mean 'block_size'?)",
        ),
        (
            COMPLETE + '  - since: "2"\n    host: {per_iteration_s: -1 ms}\n',
            "mine.yaml:16: versions.1.host.per_iteration_s: expected a number of at least 0, got '-1 ms'",
        ),
        (COMPLETE + '  - since: "0.9"\n', "mine.yaml:1: version '0.9' must come before '1': oldest first"),
        (
            COMPLETE
            + '  - since: "2"\n    batch_limits: [{max_num_seqs: 1, max_num_batched_tokens: 1, not_on: [x]}]\n',
            "mine.yaml:15: versions.1: the last of batch_limits must hold on every accelerator",
        ),
    ],
)
def test_a_broken_engine_says_where(tmp_path: Path, versions: str, expected: str):
    with pytest.raises(ProfileError) as caught:
        engine(tmp_path, versions)
    assert str(caught.value).endswith(f"/{expected}")


def test_tensorrt_llm_multiplies_mxfp4_in_eight_bits_on_blackwell_unless_asked():
    version, left_open = load_engine("tensorrt-llm").at("latest"), Quantization()
    assert version.multiplied_on(load_hardware("B200-SXM-180GB"), left_open).activations == "fp8"
    assert version.multiplied_on(load_hardware("H200-SXM-141GB"), left_open).activations is None
    asked = Quantization(activations="bf16")
    assert version.multiplied_on(load_hardware("B200-SXM-180GB"), asked) is asked
