"""Finds profiles by name: the user's own ``profiles`` folder first, then those that come with the program.

A profile is one YAML file in ``profiles/KIND``; a name with a slash is a file in a subfolder. Names match
without regard to case, and a space counts as a hyphen. A path to a YAML file works instead of a name, and for a
model also the path to a Hugging Face ``config.json`` or to the folder that holds one.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sim.errors import ProfileError, did_you_mean
from sim.paths import is_file, is_folder, located
from sim.profiles.base import Profile
from sim.profiles.folders import Kind, exact, folded, folders, name_in, names
from sim.yamlfile import read_yaml, validate

if TYPE_CHECKING:
    from sim.profiles.apis import ApiList
    from sim.profiles.calibrated import HardwareCalibration
    from sim.profiles.calibrated_all_to_all import AllToAllCalibration
    from sim.profiles.calibrated_engine import EngineCalibration
    from sim.profiles.calibrated_errors import ErrorTable
    from sim.profiles.calibrated_links import LinkCalibration
    from sim.profiles.calibrated_power import PowerCalibration
    from sim.profiles.engine import Engine
    from sim.profiles.flags import FlagTable
    from sim.profiles.grammar import Grammar
    from sim.profiles.hardware import Hardware
    from sim.profiles.languages import Languages
    from sim.profiles.model import Model
    from sim.profiles.prices import PriceList
    from sim.profiles.workload import WorkloadPreset

__all__ = [
    "find",
    "load",
    "load_all_to_all",
    "load_apis",
    "load_calibrated_engine",
    "load_calibrated_hardware",
    "load_engine",
    "load_error_table",
    "load_flags",
    "load_grammar",
    "load_hardware",
    "load_languages",
    "load_model",
    "load_power",
    "load_prices",
    "load_workload",
    "profile_text",
]

_MOST_WORDS = 5
_ALIASES = re.compile(r"^aliases: \[(.*?)\]", re.MULTILINE | re.DOTALL)

_CLASSES: dict[Kind, tuple[str, str]] = {
    "hardware": ("sim.profiles.hardware", "Hardware"),
    "models": ("sim.profiles.model", "Model"),
    "engines": ("sim.profiles.engine", "Engine"),
    "flags": ("sim.profiles.flags", "FlagTable"),
    "grammars": ("sim.profiles.grammar", "Grammar"),
    "workloads": ("sim.profiles.workload", "WorkloadPreset"),
    "prices": ("sim.profiles.prices", "PriceList"),
    "apis": ("sim.profiles.apis", "ApiList"),
    "languages": ("sim.profiles.languages", "Languages"),
    "calibrated/hardware": ("sim.profiles.calibrated", "HardwareCalibration"),
    "calibrated/engines": ("sim.profiles.calibrated_engine", "EngineCalibration"),
    "calibrated/errors": ("sim.profiles.calibrated_errors", "ErrorTable"),
    "calibrated/all_to_all": ("sim.profiles.calibrated_all_to_all", "AllToAllCalibration"),
    "calibrated/links": ("sim.profiles.calibrated_links", "LinkCalibration"),
    "calibrated/power": ("sim.profiles.calibrated_power", "PowerCalibration"),
}


def load_hardware(name: str, beside: Path | None = None) -> Hardware:
    """Load an accelerator by name, alias or path to a YAML file.

    Parameters
    ----------
    name
        Name, alias or path.
    beside
        Folder of the experiment: its ``profiles`` are searched first, and paths are relative to it.

    Raises
    ------
    ProfileError
        No such profile (with the closest names), or one that cannot be used.
    """
    return cast("Hardware", load("hardware", name, beside))


def load_model(name: str, beside: Path | None = None) -> Model:
    """Load a model by name, or from a ``config.json`` or the folder that holds one; see `load_hardware`."""
    path = find("models", name, beside)
    if is_folder(path) or path.suffix == ".json":
        from sim.profiles import huggingface

        return huggingface.read(path)
    return cast("Model", load("models", name, beside))


def load_engine(name: str, beside: Path | None = None) -> Engine:
    """Load an engine with all its versions; see `load_hardware`."""
    return cast("Engine", load("engines", name, beside)).resolve(lambda behind: load_engine(behind, beside))


def load_flags(name: str, beside: Path | None = None) -> FlagTable:
    """Load the flags of an engine's server; see `load_hardware`."""
    return cast("FlagTable", load("flags", name, beside))


def load_grammar(name: str, beside: Path | None = None) -> Grammar:
    """Load what a library for structured output costs; see `load_hardware`."""
    return cast("Grammar", load("grammars", name, beside))


def load_workload(name: str, beside: Path | None = None) -> WorkloadPreset:
    """Load a preset of lengths; see `load_hardware`."""
    return cast("WorkloadPreset", load("workloads", name, beside))


def load_calibrated_hardware(name: str, beside: Path | None = None) -> HardwareCalibration:
    """Load what the kernels of an accelerator reach, with the constants of its relative where it has none."""
    hardware = load_hardware(name, beside)
    calibration = cast("HardwareCalibration", load("calibrated/hardware", hardware.name, beside))
    resolved = calibration.resolve(lambda relative: load_calibrated_hardware(relative, beside))
    if resolved.bus_all_reduce:
        return resolved
    way = "pcie" if hardware.peer_to_peer else "host"
    links = cast("LinkCalibration", load("calibrated/links", way, beside))
    return resolved.model_copy(update={"bus_all_reduce": links.all_reduce})


def load_calibrated_engine(name: str, beside: Path | None = None) -> EngineCalibration:
    """Load the constants of an engine that were fitted to serving runs; see `load_hardware`."""
    return cast("EngineCalibration", load("calibrated/engines", name, beside))


def load_all_to_all(name: str, beside: Path | None = None) -> AllToAllCalibration:
    """Load what a library reaches that sends tokens to the ranks of their experts; see `load_hardware`."""
    return cast("AllToAllCalibration", load("calibrated/all_to_all", name, beside))


def load_languages(name: str, beside: Path | None = None) -> Languages:
    """Load how many tokens words become; see `load_hardware`."""
    return cast("Languages", load("languages", name, beside))


def load_power(name: str, beside: Path | None = None) -> PowerCalibration:
    """Load what boards draw by what they wait for; see `load_hardware`."""
    return cast("PowerCalibration", load("calibrated/power", name, beside))


def load_apis(name: str, beside: Path | None = None) -> ApiList:
    """Load what others charge for a model; see `load_hardware`."""
    return cast("ApiList", load("apis", name, beside))


def load_prices(name: str, beside: Path | None = None) -> PriceList:
    """Load the offers for an accelerator, by its own name; see `load_hardware`."""
    return cast("PriceList", load("prices", name, beside))


def load_error_table(name: str, beside: Path | None = None) -> ErrorTable:
    """Load how far predictions were off where runs were measured; see `load_hardware`."""
    return cast("ErrorTable", load("calibrated/errors", name, beside))


def find(kind: Kind, name: str, beside: Path | None = None) -> Path:
    """Return the file of a profile, or the path that *name* is (for a model, also a folder or a JSON file).

    Raise a `ProfileError` with the closest names if there is none.
    """
    given = located(name, beside)
    if Path(name).suffix in (".yaml", ".yml", ".json"):
        return given
    path = next(_matches(kind, name, beside), None)
    if path is None and kind == "models" and is_folder(given):
        return given
    if path is None:
        raise ProfileError(f"no profile {name!r} in {kind}{_suggestion(kind, name, beside)}")
    return path


def profile_text(kind: Kind, name: str, beside: Path | None = None) -> str:
    """Return a profile's file as it is written; for a model folder, its ``config.json``."""
    path, content = _content(kind, name, beside)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ProfileError("is not UTF-8 text", file=str(path)) from None


def _content(kind: Kind, name: str, beside: Path | None) -> tuple[Path, bytes]:
    path = find(kind, name, beside)
    path = path / "config.json" if is_folder(path) else path
    try:
        return path, path.read_bytes()
    except OSError as problem:
        raise ProfileError(f"cannot be read: {problem.strerror}", file=str(path)) from None


def load(kind: Kind, name: str, beside: Path | None = None) -> Profile:
    """Load the profile of any *kind*; raise `ProfileError` as the others do."""
    path = find(kind, name, beside)
    modified_ns = path.stat().st_mtime_ns if is_file(path) else 0
    return _read(kind, path, modified_ns)


@functools.cache
def _read(kind: Kind, path: Path, modified_ns: int) -> Profile:
    # modified_ns is part of the cache's key, so that a changed file is read anew.
    document = read_yaml(path, ProfileError)
    module, class_name = _CLASSES[kind]
    model_class: type[Profile] = getattr(importlib.import_module(module), class_name)
    profile = validate(model_class, document)
    if not f"/{path.with_suffix('').as_posix()}".casefold().endswith(f"/{profile.name}".casefold()):
        raise document.error(("name",), f"the name {profile.name!r} is not that of the file")
    return profile


def _matches(kind: Kind, name: str, beside: Path | None) -> Iterator[Path]:
    """Yield the profiles called *name*, by name before by alias, the user's own before the program's."""
    if found := exact(kind, name, beside):
        yield found
    wanted = folded(name)
    files = [(folder, path) for folder in folders(kind, beside) for path in sorted(folder.rglob("*.yaml"))]
    yield from (path for folder, path in files if folded(name_in(folder, path)) == wanted)
    for _, path in files:
        # Only a file that has the word in it can have it as an alias; so few are read as YAML.
        if wanted in folded(path.read_text(encoding="utf-8", errors="replace")):
            aliases = _read(kind, path, path.stat().st_mtime_ns).aliases
            if wanted in map(folded, aliases):
                yield path


def _aliases_in(path: Path) -> list[str]:
    """Return the aliases written in a profile, without reading the rest: a suggestion must not cost a second."""
    found = _ALIASES.search(path.read_text(encoding="utf-8", errors="replace"))
    return [alias.strip(" '\"\n") for alias in found[1].split(",")] if found else []


def _suggestion(kind: Kind, name: str, beside: Path | None) -> str:
    known = names(kind, beside)
    if near := did_you_mean(name, known):
        return near
    aliases = [alias for profile in known for alias in _aliases_in(find(kind, profile, beside))]
    # "70B" is far from every name by its letters, and yet a word of many.
    words = [profile for profile in known if f"-{folded(name)}-" in f"-{folded(profile)}-"]
    named = f"; {', '.join(words[:_MOST_WORDS])} have it in the name" if words else ""
    return did_you_mean(name, aliases) or f"{named}; `python -m sim profiles list {kind}` shows all {len(known)}"
