"""Rows whose prompts and answers were on different accelerators: how many of each, and how they were tied together."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibration.cases.not_modelled import NotModelledError
from calibration.cases.serving import ServingCase

__all__ = ["Side", "disaggregation_of", "engine_case", "is_disaggregated", "sides_of"]

_GPUS_OF = r"(\d+)GPU\(tp(\d+) ep(\d+) dpa=(True|False) x(\d+)\)"
_INFERENCEX = re.compile(rf"DISAGG prefill {_GPUS_OF} decode {_GPUS_OF}")
_JSON_NAMES = ("num_workers", "tp_size", "attention_dp_size", "pp_size", "moe_ep_size")
_ROLES = ("prefill", "decode")
_COUNTS = re.compile(r"DISAGG (\d+) prefill \+ (\d+) decode")
_MIXED = {
    "GH200 prefill + A100 decode (NIXL)": ("GH200-96GB", "A100-SXM-80GB"),
    "A100/GH200 mix (see repo README)": ("GH200-96GB", "A100-SXM-80GB"),
}
"""Accelerators of both sides where a cell names two kinds; that decode runs on the A100s of the second is assumed."""


@dataclass(frozen=True, slots=True)
class Side:
    """The replicas of one role: *workers* of them; *gpu* where it is not the row's."""

    workers: int
    tp: int
    dp: int = 1
    pp: int = 1
    ep: int = 1
    gpu: str = ""

    def as_pool(self, role: str) -> dict[str, Any]:
        """Return it as a pool of an experiment."""
        parallelism = {"tp": self.tp, "dp": self.dp, "pp": self.pp, "ep": self.ep}
        pool: dict[str, Any] = {"name": role, "role": role, "replicas": self.workers, "parallelism": parallelism}
        return pool | ({"gpu": self.gpu} if self.gpu else {})


def is_disaggregated(case: ServingCase) -> bool:
    """Tell whether prompts and answers of *case* were on different accelerators."""
    return case.text("mode") == "disagg"


def sides_of(case: ServingCase, assumed: list[str]) -> tuple[Side, Side]:
    """Return the prefill and the decode replicas of *case*; raise `NotModelledError` where the row does not say."""
    notes = case.text("notes")
    if found := _INFERENCEX.search(notes):
        cells = found.groups()
        return _inferencex(*cells[:5]), _inferencex(*cells[5:])
    if "{" in notes:
        return _from_json(json.loads(notes[notes.index("{") :]))
    if "2 processes" in notes:
        raise NotModelledError("two processes that share an accelerator are not modelled")
    if case.text("gpu") in _MIXED:
        found = _COUNTS.search(notes)
        counts = (int(found[1]), int(found[2])) if found else (1, 1)
        gpus = _MIXED[case.text("gpu")]
        assumed.append(f"{gpus[0]} prefills, {gpus[1]} decodes")
        prefill, decode = (Side(count, 1, gpu=gpu) for count, gpu in zip(counts, gpus, strict=True))
        return prefill, decode
    raise NotModelledError("how many accelerators prefill and decode is not stated")


def _inferencex(gpus: str, tp: str, ep: str, dpa: str, workers: str) -> Side:
    """Return one side as InferenceX writes it: with attention data parallel, `tp` counts those ranks."""
    if int(workers) * int(tp) != int(gpus):
        raise NotModelledError(f"{workers} workers of tp {tp} are not the stated {gpus} accelerators")
    if dpa == "True":
        return Side(int(workers), 1, dp=int(tp), ep=int(ep))
    return Side(int(workers), int(tp), ep=int(ep))


def _from_json(cells: Mapping[str, str]) -> tuple[Side, Side]:
    if "prefill_num_workers" not in cells:
        raise NotModelledError("how many prefill and decode workers there were is not stated")
    prefill, decode = (_side({name: int(cells[f"{role}_{name}"]) for name in _JSON_NAMES}) for role in _ROLES)
    return prefill, decode


def _side(cells: Mapping[str, int]) -> Side:
    return Side(
        cells["num_workers"],
        cells["tp_size"],
        dp=cells["attention_dp_size"],
        pp=cells["pp_size"],
        ep=cells["moe_ep_size"],
    )


def engine_case(case: ServingCase) -> ServingCase:
    """Return *case* with the engine behind Dynamo; the version of its image is Dynamo's own, not the engine's."""
    engine = {"dynamo-trt": "trtllm", "dynamo-sglang": "sglang"}.get(case.text("engine"), case.text("engine"))
    version = "" if engine == "trtllm" else case.text("engine_version")
    return ServingCase({**case.row, "engine": engine, "engine_version": version})


def disaggregation_of(case: ServingCase, assumed: list[str]) -> dict[str, Any]:
    """Return how both sides of *case* were tied together."""
    if case.text("gpu") not in _MIXED:
        return {}
    assumed.append("a network of 1 Gb/s: in none of these runs did more than 109 MB/s of KV go through")
    return {"bytes_per_s": "1 Gb/s"}
