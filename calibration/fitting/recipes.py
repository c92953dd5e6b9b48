"""Which runs the entries of the engine constants that come along are fitted to."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from calibration.cases.anomalies import anomaly_of
from calibration.cases.names import gpu_of, version_of
from calibration.cases.not_modelled import NotModelledError
from calibration.cases.serving import ServingCase
from calibration.fitting.priors import FACTORS_DEVIATION, OTHER_KERNELS_DEVIATION, stand_for_others
from sim.errors import UserError, did_you_mean
from sim.profiles.calibrated_engine import ConstantName, holds

__all__ = ["RECIPES", "Recipe", "by_engine", "chosen", "drawn"]

MOST_POINTS = 24
_MOST_CONCURRENT = 64
"""Loads beyond are left to validation: they cost the most to simulate, and tell nothing new of an iteration."""


class Recipe(NamedTuple):
    """One entry: which runs, and whether host time adds to the GPU's or hides behind it.

    Attributes
    ----------
    case_id
        How their identifiers begin.
    only
        Column to the values that are fitted, where the others are to show what the constants are worth beside them.
    host_s
        What an iteration is thought to take the host before the runs are seen, where its profile's processor is not
        the one that ran; as uncertain as it is long.
    deviation
        How far from 1 the factors on kernels may be: wide where these are another engine's on another accelerator.
    users
        Most at once.
    runs
        Most that are drawn.
    load_types
        What its runs are: times of servers, or of batches where nothing else was published.
    alone
        Its kernels are so slow that nothing of it goes into what holds for accelerators without runs.
    held
        Constants that are left as they are: where all runs are of one model, a factor on the compute rate would be that
        of its experts' kernels, and hold for every other model, too.
    traced
        Release whose iterations, timed one by one, are fitted beside the runs.
    """

    engine: str
    since: str
    before: str | None
    gpus: tuple[str, ...]
    overlapped: tuple[bool, ...]
    case_id: str = ""
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()
    host_s: float | None = None
    deviation: float = FACTORS_DEVIATION
    users: int = _MOST_CONCURRENT
    load_types: tuple[str, ...] = ("concurrency", "rate")
    alone: bool = False
    held: tuple[ConstantName, ...] = ()
    runs: int = MOST_POINTS
    traced: str = ""

    @property
    def name(self) -> str:
        """First version and accelerator."""
        return f"{self.since}:{self.gpus[0]}"

    @property
    def of_other_kernels(self) -> bool:
        """Its factors stand for kernels that nobody timed, and its host times for what these leave."""
        return stand_for_others(self.deviation)


_HOST_OF_2024_S = 2.4e-3
"""What vLLM 0.5 took the host an iteration beside timed kernels: 1.9 ms on A100, 2.8 ms on H100."""
_SLOW_HOST_S = 10e-3
"""A token of DeepSeek-R1-Distill-Qwen-1.5B took 11.3 ms on the RTX 4090 that ran, its weights a third of that."""
_BATCHES = ("batch",)
_ONE_CARD = (("tp", ("1",)),)
_ALL_OF_LLAMA_CPP = Recipe("llama-cpp", "0", None, (), (False,), deviation=OTHER_KERNELS_DEVIATION, load_types=_BATCHES)
_OF_OTHER_KERNELS = Recipe(
    "vllm", "0.2", "0.6", (), (False,), host_s=_HOST_OF_2024_S, deviation=OTHER_KERNELS_DEVIATION, load_types=_BATCHES
)

RECIPES = (
    Recipe("vllm", "0.2", "0.6", ("A100-SXM-40GB",), (False,), load_types=_BATCHES),
    Recipe("vllm", "0.2", "0.6", ("H100-SXM-80GB",), (False,), load_types=_BATCHES),
    *(_OF_OTHER_KERNELS._replace(gpus=(gpu,)) for gpu in ("MI250", "MI300X", "Max-1550")),
    Recipe("vllm", "0.8", "0.8.5", ("H100-PCIe-80GB",), (False,), "pub", _ONE_CARD),
    Recipe("vllm", "0.8.5", "0.14", ("H100-PCIe-80GB",), (False,), "pub", _ONE_CARD),
    Recipe("vllm", "0.8", "0.14", ("RTX-4090",), (True,), "pub", _ONE_CARD, _SLOW_HOST_S),
    Recipe("vllm", "0.8", "0.14", ("L40S",), (False,), "pub"),
    Recipe("vllm", "0.8", "0.14", ("H100-SXM-80GB",), (False,), "sil"),
    Recipe("vllm", "0.8", "0.14", ("H200-SXM-141GB",), (False,), "sil"),
    Recipe("vllm", "0.14", "0.18", ("H100-SXM-80GB",), (False,), "run", runs=60, traced="0.15.1"),
    Recipe("vllm", "0.18", "0.23", ("H100-SXM-80GB",), (True, False), "sil", held=("compute_factor",)),
    Recipe("vllm", "0.14", "0.23", ("H200-SXM-141GB",), (True, False), "sil", held=("compute_factor",)),
    Recipe("vllm", "0.14", "0.23", ("B200-SXM-180GB",), (True, False), "sil"),
    Recipe("vllm", "0.23", None, ("H100-SXM-80GB",), (False,), "run", (("load_value", ("2", "10")),)),
    Recipe("tensorrt-llm", "0.11", "1.0", ("H100-SXM-80GB",), (True,), "pub"),
    Recipe("tensorrt-llm", "1.0", None, ("H100-SXM-80GB",), (True,), "sil"),
    Recipe("tensorrt-llm", "1.0", None, ("H200-SXM-141GB",), (True,), "sil"),
    Recipe("tensorrt-llm", "1.0", None, ("B200-SXM-180GB",), (True,), "sil"),
    Recipe("sglang", "0.5", None, ("H100-SXM-80GB",), (True,), "sil"),
    Recipe("sglang", "0.5", None, ("H200-SXM-141GB",), (True,), "sil", users=512),
    Recipe("sglang", "0.5", None, ("B200-SXM-180GB",), (True,), "sil"),
    *(
        _ALL_OF_LLAMA_CPP._replace(gpus=(gpu,))
        for gpu in (
            "RTX-4090",
            "RTX-3090",
            "RTX-A6000",
            "RTX-6000-Ada",
            "A100-SXM-40GB",
            "H100-SXM-80GB",
            "H100-PCIe-80GB",
            "MI300X",
            "DGX-Spark",
            "Strix-Halo",
            "Apple-M2-Ultra",
        )
    ),
    *(
        _ALL_OF_LLAMA_CPP._replace(gpus=(gpu,), only=only, alone=True)
        for gpu, only in (("MI250", ()), ("Max-1550", _ONE_CARD))
    ),
)


def chosen(case: ServingCase, recipe: Recipe) -> bool:
    """Tell whether *case* is one of the runs of *recipe*."""
    if case.text("load_type") not in recipe.load_types or case.text("quality") != "ok":
        return False
    if not case.text("load_value") or any(case.text(column) not in values for column, values in recipe.only):
        return False
    if not case.name.startswith(recipe.case_id) or case.text("mode") != "agg":
        return False
    if case.text("load_type") == "concurrency" and (case.number("load_value") or 0) > recipe.users:
        return False
    try:
        kind, version, _ = version_of(case, [])
        known = kind == recipe.engine and gpu_of(case) in recipe.gpus
    except NotModelledError:
        return False
    return known and holds(recipe.since, recipe.before, version) and anomaly_of(case) is None


def drawn(cases: Sequence[ServingCase], most: int = MOST_POINTS) -> list[ServingCase]:
    """Return *most* different cases, spread over models, ranks and loads by the hash of their names."""
    unlike = list({case.question: case for case in cases}.values())
    groups: dict[tuple[str, ...], list[ServingCase]] = defaultdict(list)
    for case in sorted(unlike, key=_hash):
        groups[case.text("model"), case.text("tp"), case.text("load_value")].append(case)
    in_turn = ((place, _hash(case), case) for found in groups.values() for place, case in enumerate(found))
    return [case for *_, case in sorted(in_turn, key=lambda turn: turn[:2])[:most]]


def _hash(case: ServingCase) -> str:
    return hashlib.sha256(case.name.encode()).hexdigest()


def by_engine(chosen_engines: Sequence[str] | None) -> dict[str, list[Recipe]]:
    """Return the recipes of *chosen_engines*, or of all, by engine; raise `UserError` for one that has none."""
    known = {recipe.engine for recipe in RECIPES}
    for name in chosen_engines or ():
        if name not in known:
            raise UserError(f"--engine {name}: no runs of it are fitted{did_you_mean(name, known)}")
    recipes: dict[str, list[Recipe]] = defaultdict(list)
    for recipe in RECIPES:
        if not chosen_engines or recipe.engine in chosen_engines:
            recipes[recipe.engine].append(recipe)
    return recipes
