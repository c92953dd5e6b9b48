"""What reads a user's input, as a user calls it; each may raise nothing but a `SimError`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz.seeds import ROOT


def experiment(path: Path) -> None:
    """Load an experiment, and the first points of its sweep."""
    from sim.experiment import defaults_used, load_experiment
    from sim.study.point import points_of

    experiment = load_experiment(path)
    list(defaults_used(experiment))
    if experiment.sweep is not None:
        for point in points_of(experiment)[:3]:
            point.experiment(experiment)


def deployment(path: Path) -> None:
    """Make an experiment ready to run: profiles, flags, memory, prices."""
    from sim.experiment import load_experiment
    from sim.simulate import ready_pools
    from sim.simulate.inputs import input_files

    experiment = load_experiment(path)
    ready_pools(experiment)
    input_files(experiment)


def workload(path: Path) -> None:
    """Draw the requests of an experiment, if they are few."""
    from sim.experiment import load_experiment
    from sim.workload import generate

    experiment = load_experiment(path)
    if (experiment.workload.num_requests or 1000) <= 2000:
        generate(experiment.workload, experiment.seed, experiment.folder)


def settings(path: Path) -> None:
    """Apply lines as ``--set`` would, in the text that the operating system hands over."""
    from sim.experiment import experiment_of

    document = _base("8b_l40s_chat")
    for line in path.read_bytes().decode("utf-8", "surrogateescape").splitlines()[:8]:
        document = document.override(line)
    experiment_of(document)


def sweep_paths(path: Path) -> None:
    """Take lines ``path=values`` as the axes of a sweep."""
    from sim.experiment import experiment_of
    from sim.study.point import points_of

    document = _base("8b_l40s_chat")
    axes = {}
    for line in path.read_bytes().decode("utf-8", "surrogateescape").splitlines()[:3]:
        dotted, _, text = line.partition("=")
        axes[dotted] = document.override(f"seed={text}").data["seed"]
    base = experiment_of(document.replace("sweep", axes, document.file))
    for point in points_of(base)[:3]:
        point.experiment(base)


@functools.cache
def _base(name: str) -> Any:
    from sim.yamlfile import read_yaml

    return read_yaml(ROOT / "experiments" / f"{name}.yaml")


def url(path: Path) -> None:
    """Open a page by its link."""
    from sim.ui.example import CHAT_70B
    from sim.ui.link import parted
    from sim.ui.state import State

    state = State(CHAT_70B, _uploads())
    state.read_query(parted(path.read_bytes().decode("utf-8", "replace")))
    _shown(state)


def page_yaml(path: Path) -> None:
    """Put a file into the page's editor."""
    from sim.ui.example import CHAT_70B
    from sim.ui.state import State

    state = State(CHAT_70B, _uploads())
    state.read_text(path.read_bytes().decode("utf-8", "replace"))
    _shown(state)


def _shown(state: Any) -> None:
    from sim.simulate import ready_pools
    from sim.ui.link import joined

    experiment, _ = state.checked()
    joined(state.query)
    if experiment is not None:
        ready_pools(experiment)


@functools.cache
def _uploads() -> Any:
    from sim.ui.uploads import Uploads

    return Uploads()


def config(path: Path) -> None:
    from sim.profiles.describe import describe
    from sim.profiles.library import load_model

    describe(load_model(str(path)))


def checkpoint(path: Path) -> None:
    """Read the header of tensors beside a config."""
    from sim.profiles.library import load_model
    from sim.simulate.inputs import file_hash

    load_model(str(path.parent))
    file_hash(path)


def trace(path: Path) -> None:
    from sim.report.json import to_json
    from sim.report.traces import as_json, inspect

    to_json(as_json(inspect(path)))


def trace_companion(path: Path) -> None:
    from sim.workload.traces import read_trace

    read_trace(path.with_name("trace.jsonl"))


def benchmark(path: Path) -> None:
    from calibration import table
    from calibration.importers import import_file
    from calibration.suspicion import suspicions

    runs = [(run, suspicions(run)) for run in import_file(path)]
    for show in (table.as_table, table.as_json, table.as_csv):
        show(runs)


def cases(path: Path) -> None:
    """Turn a benchmark file into cases and their experiments, as `calibration validate` does."""
    from calibration.cases.not_modelled import NotModelledError
    from calibration.cases.of_files import kind_of, serving_cases_of
    from calibration.experiment.of_case import experiment_of_case

    if kind_of(path) in ("serving", "runs"):
        for case in serving_cases_of(path, 5, {}, {"gpu": "H100-SXM-80GB", "tp": "1"}):
            try:
                experiment_of_case(case)
            except NotModelledError:
                continue


def memory_cases(path: Path) -> None:
    """Plan the memory of start-up logs, as `calibration validate` does."""
    from calibration.cases.of_files import kind_of
    from calibration.validation.memory import validate_memory

    if kind_of(path) == "memory":
        validate_memory(path, 5)


def kernels(path: Path) -> None:
    from calibration.cases.of_files import kind_of
    from calibration.kernels.measured import read

    if kind_of(path) == "kernels":
        read(path)


def profile(kind: str) -> Callable[[Path], None]:
    def parse(path: Path) -> None:
        from sim.profiles.library import load

        load(kind, str(path))  # type: ignore[arg-type]

    return parse


_BARE = """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB, parallelism: {tp: 2}}
workload: {arrivals: {kind: offline}, lengths: {kind: fixed, input_tokens: 10, output_tokens: 10}}
"""


def used(field: str) -> Callable[[Path], None]:
    """Make a deployment ready that names the profile in *field*."""

    def parse(path: Path) -> None:
        from sim.experiment import experiment_of
        from sim.simulate import ready_pools
        from sim.yamlfile import parse_yaml

        ready_pools(experiment_of(parse_yaml(_BARE, "x.yaml").replace(field, str(path), "x")))

    return parse


def answers(path: Path) -> None:
    from sim.report import workload as report
    from sim.workload.questionnaire import Answers, workload_of
    from sim.yamlfile import read_yaml, validate

    experiment, derivation = workload_of(validate(Answers, read_yaml(path)), path.parent)
    report.experiment_yaml(experiment, derivation)


def loads(path: Path) -> None:
    from sim.moe.expert_map import Layout
    from sim.moe.placement.eplb import Eplb
    from sim.moe.recordings import read_loads

    loads = read_loads(path.parent if path.suffix == ".safetensors" else path)
    if loads.size < 2000 and loads.shape[1] % 2 == 0:
        Eplb().place(loads, Layout(loads.shape[1], 2, loads.shape[1], 1, 1))


def slots(path: Path) -> None:
    from sim.moe.recordings import read_map

    read_map(path)


def run_file(path: Path) -> None:
    """Compare a folder of `run --out` with itself."""
    from sim.study.compare import Side, compare
    from sim.study.played import from_folder

    name, played = from_folder(path.parent)
    compare([Side(name, [played]), Side("other", [played])]).as_dict()


def sweep_folder(path: Path) -> None:
    from sim.study.folder import SweepFolder

    SweepFolder(path.parent).rows()


def cache_entry(path: Path) -> None:
    from sim.study.cache import Cache

    Cache(path.parents[2]).get(path.stem)
