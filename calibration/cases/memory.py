"""Start-up logs of engines as rows of a CSV file: what was asked for, and what the engine logged."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calibration.cases.not_modelled import NotModelledError
from calibration.reading import rows_of
from sim.errors import ProfileError
from sim.memory import Deployment, Limits, plan
from sim.profiles.engine import EngineVersion
from sim.profiles.engine_memory import ProfiledMemory
from sim.profiles.hardware import Hardware
from sim.profiles.library import load_engine, load_hardware, load_model
from sim.profiles.model import Model
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Quantization
from sim.units import GIB

__all__ = ["COLUMNS", "LOGGED", "MemoryCase", "read_cases"]

COLUMNS = ("case", "model", "config_file", "gpu", "gpu_mem_gib", "dtype_quant", "vllm_version", "status")
"""Columns by which such a file is told from one of serving benchmarks."""

LOGGED = {
    "weights_gib": "logged_weights_gib",
    "activation_gib": "logged_activation_gib",
    "non_torch_gib": "logged_non_torch_gib",
    "cuda_graph_gib": "logged_cudagraph_gib",
    "kv_gib": "logged_kv_gib",
    "kv_tokens": "logged_kv_tokens",
    "kv_blocks": "logged_gpu_blocks",
    "max_concurrency": "logged_max_concurrency",
}
"""Key of `size` to the column that holds what the engine logged."""

_FURTHER = ("tp", "pp", "kv_dtype", "notes")
"""Columns that a file may lack, beside those of `LOGGED` and of limits."""
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d+)?")
_STAND_IN = "RTX-4090"  # lends its vendor to a card that has no profile; its memory is the row's
_EVERY_LINEAR = re.compile(r"w4a16|int4|awq|gptq|4-?bit|w8a8|w8a16|int8|fp8|nvfp4|float32|fp32")
_NOT_MODELLED = {
    "decode-context-parallel": "decode context parallelism is not modelled",
    "verify before use": "the source guesses the model",
}
"""Words in the notes of a row, and why they rule it out."""
_WEIGHTS = {
    "w4a16": "int4",
    "awq": "int4",
    "gptq": "int4",
    "4bit": "int4",
    "4-bit": "int4",
    "w8a8": "int8",
    "w8a16": "int8",
    "float32": "fp32",
}


@dataclass(frozen=True, slots=True)
class MemoryCase:
    """One start of an engine.

    Attributes
    ----------
    row
        The cells as they were written; an empty one was not logged.
    folder
        Where `config_file` is relative to.
    """

    row: Mapping[str, str]
    folder: Path

    @property
    def name(self) -> str:
        """Its identifier in the file."""
        return self.row["case"]

    def number(self, column: str) -> float | None:
        """Return the first number of a cell such as ``8192 (default)`` or ``~50``; None if there is none."""
        match = _NUMBER.search(self.row.get(column) or "")
        return float(match[0]) if match else None

    def _whole(self, column: str) -> int | None:
        value = self.number(column)
        return None if value is None or value < 1 else int(value)

    @property
    def measured(self) -> dict[str, Any]:
        """What was logged, by the keys of `size`; `fits` says whether the engine started."""
        logged = {key: self.number(column) for key, column in LOGGED.items()}
        starts = not self.row["status"].upper().startswith("FAILS")
        return {key: value for key, value in logged.items() if value is not None} | {"fits": starts}

    @property
    def visible_bytes(self) -> float | None:
        """Memory that the framework saw [B]."""
        gib = self.number("gpu_mem_gib")
        return gib * GIB if gib is not None and gib > 0 else None

    def deployment(self) -> Deployment:
        """Return what was started, with the engine version's defaults for what was not logged.

        Raises
        ------
        NotModelledError
            The row lacks its model or its card, or used what the memory model does not have.
        """
        self._check_notes()
        model, hardware, engine = self._model(), self._hardware(), self._engine()
        self._check_vision(model, engine)
        length = self._whole("max_model_len") or model.max_position_embeddings
        limits = self._limits(hardware, engine, length)
        try:
            parallelism = Parallelism(tp=self._whole("tp") or 1, pp=self._whole("pp") or 1)
        except ValueError:
            raise NotModelledError("tp and pp are not those of a deployment") from None
        asked = Deployment(model, hardware, self._quantization(model), parallelism, engine.memory, limits)
        if self._whole("max_model_len") is not None:
            return asked
        # Whoever started it chose a length that fits, if any does.
        longest = plan(asked).longest_sequence
        return replace(asked, limits=replace(limits, max_model_len=max(1, min(length, longest))))

    def _limits(self, hardware: Hardware, engine: EngineVersion, length: int) -> Limits:
        seqs, tokens = engine.limits_on(hardware, max_model_len=length)
        return Limits(
            max_model_len=length,
            max_num_seqs=self._whole("max_num_seqs") or seqs,
            max_num_batched_tokens=self._whole("max_num_batched_tokens") or tokens,
            gpu_memory_utilization=self.number("gpu_memory_utilization") or engine.gpu_memory_utilization,
            block_size=self._whole("block_size") or engine.block_size,
            captured=() if "eager" in self.row.get("notes", "") else None,
            graphs=engine.graphs,
        )

    def _check_notes(self) -> None:
        for words, reason in _NOT_MODELLED.items():
            if words in self.row.get("notes", ""):
                raise NotModelledError(reason)

    def _check_vision(self, model: Model, engine: EngineVersion) -> None:
        if model.vision_params == 0 and "vision tower" in self.row.get("notes", ""):
            raise NotModelledError("the config lacks the vision tower that was loaded")
        known = isinstance(engine.memory, ProfiledMemory) and engine.memory.activations.vision_bytes is not None
        if model.vision_params and not known:
            raise NotModelledError(f"the image profile of vLLM {self.row['vllm_version']} is not modelled")

    def _model(self) -> Model:
        cell = self.row["config_file"].strip()
        if not cell:
            raise NotModelledError("no config.json is named")
        if "nearest" in cell:
            raise NotModelledError("the config is that of another model")
        try:
            return load_model(str(self.folder / cell))
        except ProfileError as problem:
            raise NotModelledError(str(problem)) from None

    def _hardware(self) -> Hardware:
        card = re.sub(r"\(\d+x\)", "", self.row["gpu"]).strip()
        visible = self.visible_bytes
        try:
            known = load_hardware(card)
        except ProfileError:
            if visible is None:
                raise NotModelledError(f"unknown card {card!r}, and its memory is not given") from None
            known = load_hardware(_STAND_IN).model_copy(update={"name": card, "aliases": ()})
        return known.model_copy(update={"visible_memory_bytes": visible or known.visible_memory_bytes})

    def _engine(self) -> EngineVersion:
        releases = re.findall(r"\d+\.\d+(?:\.\d+)?", self.row["vllm_version"])
        try:
            return load_engine("vllm").at(releases[-1] if releases else "latest")
        except ProfileError as problem:
            raise NotModelledError(str(problem)) from None

    def _quantization(self, model: Model) -> Quantization:
        """Read types from words such as ``bfloat16/compressed-tensors`` and a model's ``quantized.w4a16``."""
        kv = "fp8" if self.row["kv_dtype"].startswith("fp8") else None
        text = f"{self.row['dtype_quant']} {self.row['model']}".casefold()
        found = _EVERY_LINEAR.search(text)
        if "int4 experts" in text:
            other = {"weights": "bf16", "experts": "int4_g32"}
        elif found is None or "fp4" in text or _same_as_checkpoint(found[0], model):
            return Quantization.model_validate({"kv_cache": kv})
        else:
            other = {"weights": _WEIGHTS.get(found[0], found[0])}
        # Another checkpoint than the config's own: nor does that one's type of KV cache hold.
        plain = "fp32" if other["weights"] == "fp32" else model.dtype
        return Quantization.model_validate(other | {"kv_cache": kv or plain})


def _same_as_checkpoint(asked: str, model: Model) -> bool:
    own = {model.checkpoint.weights, model.checkpoint.mlp, model.checkpoint.experts}
    return any(dtype is not None and dtype.startswith(asked) for dtype in own)


def read_cases(path: Path, limit: int | None, where: Mapping[str, str]) -> Iterator[MemoryCase]:
    """Yield the rows of *path* whose cells equal *where*, at most *limit* of them.

    Raise a `TraceError` for a file that lacks one of the columns.
    """
    rows = (row for _, row in rows_of(path, (*COLUMNS, *where)))
    chosen = (row for row in rows if all(row[column] == value for column, value in where.items()))
    empty = dict.fromkeys(_FURTHER, "")
    yield from (MemoryCase(empty | row, path.parent) for row in itertools.islice(chosen, limit))
