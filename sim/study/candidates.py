"""The deployments of a space: every combination of its axes, as settings of the experiment."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sim.experiment import Experiment
from sim.profiles.library import load_hardware
from sim.profiles.quantization import bytes_per_element
from sim.search import Space
from sim.simulate.profiles import named
from sim.study.standing import require_standing
from sim.sweep import Settings

__all__ = ["CAUTION", "Candidate", "candidates_of", "caution_of"]

CAUTION = (
    "weights of less than 8 bits: what they cost in quality is not simulated. Losses are uneven over tasks, and"
    " attention is more sensitive than the MLP; test on your own failures before you buy"
)
"""Known of low precisions, and said wherever one is considered."""
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """One deployment but for its number of replicas: *gpus* of them each, and what differs from the experiment."""

    gpu: str
    gpus: int
    label: str
    settings: Settings


def candidates_of(base: Experiment, space: Space) -> list[Candidate]:
    """Return the deployments of *space* in the order of its axes; those of one accelerator follow each other.

    Raises
    ------
    ConfigError
        An accelerator has no profile, there are too many combinations, or the experiment has pools, or replicas that
        come and go.
    """
    if base.pools:
        raise base.error("pools", "deployments are compared as one pool of equal replicas: leave pools out")
    require_standing(base, "deployments are compared")
    found = [each for gpu in space.gpus or (base.deployment.gpu,) for each in _of_gpu(base, space, gpu)]
    if len(found) > _MOST:
        raise base.error("search", f"{len(found):,} deployments: at most {_MOST:,} are compared")
    return found


def _of_gpu(base: Experiment, space: Space, gpu: str) -> Iterator[Candidate]:
    own = base.deployment.parallelism
    degrees = itertools.product(
        space.tp or _powers(_node(base, gpu)), space.pp or (own.pp,), space.dp or (own.dp,), space.ep or (own.ep,)
    )
    others = itertools.product(space.precisions, space.kv_cache or (None,), *space.knobs.values())
    for (tp, pp, dp, ep), (weights, kv, *knobs) in itertools.product(degrees, list(others)):
        quantization: dict[str, Any] = {"deployment.quantization.weights": weights}
        if kv is not None:
            quantization["deployment.quantization.kv_cache"] = kv
        chosen = dict(zip(space.knobs, knobs, strict=True))
        settings = {
            "deployment.gpu": gpu,
            "deployment.parallelism": {"tp": tp, "pp": pp, "dp": dp, "ep": ep},
            **quantization,
            **chosen,
        }
        yield Candidate(gpu, tp * pp * dp, _label((tp, pp, dp, ep), weights, kv, chosen), settings)


def _node(base: Experiment, gpu: str) -> int:
    return named(base, "search.gpus", lambda: load_hardware(gpu, base.folder)).gpus_per_node


def _powers(most: int) -> tuple[int, ...]:
    return tuple(2**power for power in range(most.bit_length()) if 2**power <= most)


def _label(degrees: tuple[int, int, int, int], weights: str, kv: str | None, knobs: Settings) -> str:
    names = zip(("TP", "PP", "DP", "EP"), degrees, strict=True)
    cut = " ".join(f"{name}{degree}" for name, degree in names if degree > 1 or name == "TP")
    ends = (_knob(path.rpartition(".")[2], value) for path, value in knobs.items())
    return " ".join((cut, weights, *([f"kv {kv}"] if kv else []), *ends))


def _knob(name: str, value: Any) -> str:
    """Return a setting in a few words; of a policy its kind and its options."""
    if not isinstance(value, dict):
        return f"{name}={value}"
    return " ".join(str(inner) if key == "kind" else _knob(key, inner) for key, inner in value.items())


def caution_of(space: Space) -> str:
    """Return what to know about the precisions that are allowed; empty where all have 8 bits or more."""
    return CAUTION if any(bytes_per_element(dtype) < 1 for dtype in space.precisions) else ""
