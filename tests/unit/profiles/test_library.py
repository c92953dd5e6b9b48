"""Finding profiles: search order, names, aliases, paths and what is said when there is none."""

from pathlib import Path

import pytest

import sim
from sim.errors import ProfileError
from sim.profiles.folders import names
from sim.profiles.library import find, load_engine, load_hardware, load_model, profile_text

PROJECT = Path(__file__).resolve().parents[3] / "profiles"


def card(folder: Path, file_name: str, **changes: str) -> Path:
    """Write a hardware profile below *folder*/profiles and return its path."""
    values = {
        "name": file_name,
        "vendor": "Own",
        "sources": "{all: made up}",
        "memory_bytes": "80 GiB",
        "visible_memory_bytes": "79 GiB",
        "memory_bytes_per_s": "3 TB/s",
        "peak_flops": "{bf16: 900 TFLOP/s}",
    } | changes
    path = folder / "profiles" / "hardware" / f"{file_name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}: {value}\n" for key, value in values.items()))
    return path


@pytest.mark.parametrize("spelling", ["RTX-4090", "rtx-4090", "RTX 4090", "rtx_4090", "4090", "RTX-4090-24GB"])
def test_names_and_aliases_without_regard_to_case_and_spaces(spelling: str):
    assert load_hardware(spelling).name == "RTX-4090"


def test_a_loaded_profile_is_kept_until_its_file_changes(tmp_path: Path):
    path = card(tmp_path, "Mine")
    first = load_hardware("Mine", tmp_path)
    assert load_hardware("mine", tmp_path) is first
    path.write_text(path.read_text().replace("Own", "Other"))
    assert load_hardware("Mine", tmp_path).vendor == "Other"


def test_search_order_experiment_then_working_folder_then_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    working, experiment = tmp_path / "work", tmp_path / "experiment"
    card(working, "L40S", vendor="working")
    card(experiment, "L40S", vendor="experiment")
    monkeypatch.chdir(tmp_path)
    assert load_hardware("L40S").vendor == "NVIDIA"
    monkeypatch.chdir(working)
    assert load_hardware("L40S").vendor == "working"
    assert load_hardware("L40S", experiment).vendor == "experiment"


def test_an_installed_package_brings_its_own_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    card(tmp_path, "Installed")
    (tmp_path / "profiles").rename(tmp_path / "_profiles")
    monkeypatch.setattr(sim, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    assert names("hardware") == ["Installed"]


def test_a_name_counts_before_an_alias(tmp_path: Path):
    card(tmp_path, "Another", aliases="[L40S]")
    assert load_hardware("L40S", tmp_path).vendor == "NVIDIA"
    assert load_hardware("Another", tmp_path).vendor == "Own"


def test_names_with_a_slash_are_files_in_folders(tmp_path: Path):
    card(tmp_path, "maker/Card-1")
    assert load_hardware("maker/card 1", tmp_path).name == "maker/Card-1"
    assert "maker/Card-1" in names("hardware", tmp_path)


def test_a_path_to_a_yaml_file_is_relative_to_the_experiment(tmp_path: Path):
    path = card(tmp_path, "Mine")
    assert load_hardware("profiles/hardware/Mine.yaml", tmp_path).name == "Mine"
    assert load_hardware(str(path)).name == "Mine"
    assert find("hardware", "Mine", tmp_path) == path


def test_names_are_sorted_and_complete():
    found = names("hardware")
    assert found == sorted((path.stem for path in (PROJECT / "hardware").glob("*.yaml")), key=str.casefold)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("H200-SXM-141", "no profile 'H200-SXM-141' in hardware (did you mean 'H200-SXM-141GB'"),
        ("RTX4090", "no profile 'RTX4090' in hardware (did you mean 'RTX-4090'"),
        ("", "no profile '' in hardware; `python -m sim profiles list hardware` shows all"),
        ("../../etc/passwd", "no profile '../../etc/passwd' in hardware"),
    ],
)
def test_an_unknown_name_offers_the_closest(name: str, expected: str):
    with pytest.raises(ProfileError) as caught:
        load_hardware(name)
    assert str(caught.value).startswith(expected)


def test_a_size_alone_offers_the_models_of_that_size():
    with pytest.raises(ProfileError, match=r"meta-llama/Llama-3\.3-70B-Instruct.* have it in the name"):
        load_model("70B")


def test_every_kind_refuses_an_unknown_name():
    with pytest.raises(ProfileError, match=r"^no profile 'vlm' in engines \(did you mean 'vllm'\?\)$"):
        load_engine("vlm")
    with pytest.raises(ProfileError, match=r"^no profile 'no such model' in models"):
        load_model("no such model")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": "Other"}, ":1: name: the name 'Other' is not that of the file"),
        ({"tdp": "3"}, ":8: tdp: unknown key 'tdp' (did you mean 'tdp_w'?)"),
        ({"memory_bytes": "80 GiBs"}, ":4: memory_bytes: '80 GiBs' is not a number of bytes: "),
        ({"memory_bytes": ".inf"}, ":4: memory_bytes: expected a finite number, got inf"),
        ({"memory_bytes_per_s": "3 TB"}, ":6: memory_bytes_per_s: '3 TB' is not a number of bytes/s: "),
        ({"peak_flops": "{bf61: 1 TFLOP/s}"}, ":7: peak_flops.bf61: unknown key 'bf61' (did you mean 'bf16'"),
        ({"peak_flops": "{}"}, ":7: peak_flops: expected 1 or more items, got {}"),
        ({"sources": "{}"}, ":3: sources: expected 1 or more items, got {}"),
        ({"interconnect": "{kind: X}"}, ":8: interconnect: missing key 'bytes_per_s'"),
    ],
)
def test_a_broken_profile_says_where(tmp_path: Path, changes: dict[str, str], expected: str):
    path = card(tmp_path, "Mine", **changes)
    with pytest.raises(ProfileError) as caught:
        load_hardware("Mine", tmp_path)
    assert str(caught.value).startswith(f"{path}{expected}")


def test_a_missing_file_by_path(tmp_path: Path):
    with pytest.raises(ProfileError, match=r"nope\.yaml: no such file$"):
        load_hardware("nope.yaml", tmp_path)
    with pytest.raises(ProfileError, match=r"nope\.json: cannot be read: No such file or directory$"):
        profile_text("models", "nope.json", tmp_path)
