"""Which accelerators have tables, and what is fitted for each."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from calibration.kernels import problems, tables
from calibration.kernels.problem import Problem
from calibration.kernels.tables import Table
from sim.profiles.calibrated import WIDE_HEAD
from sim.profiles.hardware import Hardware

__all__ = ["SYSTEMS", "Task", "tasks"]

SYSTEMS = {
    "A100-SXM-80GB": "a100_sxm",
    "H100-SXM-80GB": "h100_sxm",
    "H200-SXM-141GB": "h200_sxm",
    "B200-SXM-180GB": "b200_sxm",
    "B300-SXM-288GB": "b300_sxm",
    "GB200-NVL72": "gb200",
    "GB300-NVL72": "gb300",
    "L40S": "l40s",
    "RTX-PRO-6000-Server": "rtx_pro_6000_server",
    "Arc-Pro-B60": "b60",
}
"""Hardware profile to the name of its tables."""

_VLLM, _TRTLLM, _SGLANG = ("vllm",), ("trtllm",), ("sglang",)
_ALL = (*_VLLM, *_TRTLLM, *_SGLANG)
_GEMMS = {
    "bf16": ("bfloat16", _ALL),  # the vendor's library in every engine
    "fp8": ("fp8", _VLLM),
    "fp8@tensorrt-llm": ("fp8", _TRTLLM),
    "fp8@sglang": ("fp8", _SGLANG),
    "fp8_block": ("fp8_block", _ALL),
    "nvfp4": ("nvfp4", _VLLM),
    "nvfp4@tensorrt-llm": ("nvfp4", _TRTLLM),
    "nvfp4@sglang": ("nvfp4", _SGLANG),
    "int8": ("sq", _TRTLLM),
}
_EXPERTS = {
    "bf16": ("bfloat16", _VLLM),
    "bf16@sglang": ("bfloat16", _SGLANG),
    "bf16@tensorrt-llm": ("bfloat16", _TRTLLM),
    "fp8": ("fp8", _VLLM),
    "fp8@tensorrt-llm": ("fp8", _TRTLLM),
    "fp8@modelopt": ("fp8", _VLLM),
    "fp8_block": ("fp8_block", _VLLM),
    "fp8_block@sglang": ("fp8_block", _SGLANG),
    "int4": ("int4_wo", _VLLM),
    "mxfp4": ("w4a16_mxfp4", _VLLM),
    "mxfp4@marlin": ("int4_wo", _VLLM),
    "mxfp4@sglang": ("w4a16_mxfp4", _SGLANG),
    "mxfp4+fp8": ("w4a8_mxfp4_mxfp8", _VLLM),
    "mxfp4+fp8@tensorrt-llm": ("w4a8_mxfp4_mxfp8", _TRTLLM),
    "mxfp4+fp8@sglang": ("w4a8_mxfp4_mxfp8", _SGLANG),
    "nvfp4": ("nvfp4", _VLLM),
    "nvfp4@sglang": ("nvfp4", _SGLANG),
    "nvfp4@tensorrt-llm": ("nvfp4", _TRTLLM),
}
"""Weights, with their inputs where both are named, and whose kernels, to the table's type and engine."""
_MARLIN = {"mxfp4@marlin": "int4"}
"""Marlin's kernels for 4-bit weights, of which those for integers were measured: `kernels: marlin` takes them
for engines that run MXFP4 with them, such as vLLM before 0.11.1 on Hopper."""
_EXPERTS_OF = {"A100-SXM-80GB": _SGLANG}
"""Where vLLM's experts were not measured with balanced routing."""
_SLOW_PATH = (("H100-SXM-80GB", "fp8"), ("H200-SXM-141GB", "fp8"))
"""vLLM's path for ModelOpt's per-tensor fp8 reaches 0.16 of Hopper's peak and 0.2 of its memory rate, a third of what
block-scaled experts reach: it has its constants (`cost_model.kernels: modelopt`), and no other fp8 takes them."""
_KV = {"bf16": "bfloat16", "fp8": "fp8"}
_RANKS = (2, 4, 8, 16)
_FEWEST = 30
"""Shapes below which nothing is fitted."""


class Task(NamedTuple):
    """One fit: the table of a calibration and the key in it, the problem and its measurements."""

    table: str
    key: str | int
    problem: Problem
    measured: Table


def tasks(folder: Path, hardware: Hardware, wanted: Collection[str]) -> Iterator[Task]:
    """Yield what can be fitted for *hardware* from the tables in *folder*, of the *wanted* tables of constants."""
    system = SYSTEMS[hardware.name]
    makers = {"gemm": _products, "experts": _experts, "all_reduce": _all_reduces}
    for table in wanted:
        for task in makers.get(table, _attentions)(folder, system, hardware):
            if task.table == table and (table == "all_reduce" or len(task.measured) >= _FEWEST):
                yield task


def _all_reduces(folder: Path, system: str, hardware: Hardware) -> Iterator[Task]:
    for ranks in _RANKS:
        measured = tables.all_reduce(folder, system, ranks)
        if len(measured):
            yield Task("all_reduce", ranks, problems.all_reduce(hardware, ranks), measured)


def _products(folder: Path, system: str, hardware: Hardware) -> Iterator[Task]:
    for key, (dtype, engines) in _GEMMS.items():
        weights = key.partition("@")[0]
        if _native(hardware, weights):
            measured = tables.gemm(folder, system, dtype, engines, hardware)
            yield Task("gemm", key, problems.gemm(hardware, weights), measured)


def _experts(folder: Path, system: str, hardware: Hardware) -> Iterator[Task]:
    for key, (dtype, engines) in _EXPERTS.items():
        weights, _, whose = key.partition("@")
        instead = _EXPERTS_OF.get(hardware.name)
        slow = (hardware.name, weights) in _SLOW_PATH
        if _native(hardware, weights) and slow == (whose == "modelopt") and not (instead == engines and whose):
            used = engines if whose else instead or engines
            measured = tables.experts(folder, system, dtype, used, hardware)
            spread = bool(len(measured)) and bool((measured.shapes.moe_ep_size > 1).any())
            problem = problems.experts(hardware, _MARLIN.get(key, weights), alpha=measured.skew, spread=spread)
            yield Task("experts", key, problem, measured)


def _attentions(folder: Path, system: str, hardware: Hardware) -> Iterator[Task]:
    for kv, dtype in _KV.items():
        for suffix, engines in (("", _VLLM), ("@tensorrt-llm", _TRTLLM)):
            key = f"{kv}{suffix}"
            decoding = tables.decode(folder, system, dtype, engines, hardware)
            ramp = engines == _TRTLLM and hardware.name in tables.RAMPING
            yield Task("decode", key, problems.decode(hardware, kv, wide=_has_wide(decoding), ramp=ramp), decoding)
            prefilling = tables.prefill(folder, system, dtype, engines)
            yield Task("prefill", key, problems.prefill(hardware, kv, wide=_has_wide(prefilling)), prefilling)
        decoding = tables.latent_decode(folder, system, dtype, _TRTLLM)
        yield Task("latent_decode", kv, problems.latent_decode(hardware, kv), decoding)
        prefilling = tables.latent_prefill(folder, system, dtype, _TRTLLM)
        yield Task("latent_prefill", kv, problems.latent_prefill(hardware), prefilling)


def _has_wide(measured: Table) -> bool:
    return bool((measured.shapes.head_dim >= WIDE_HEAD).any())


def _native(hardware: Hardware, weights: str) -> bool:
    needed = {"fp8": "fp8", "fp8_block": "fp8", "nvfp4": "fp4", "mxfp4+fp8": "fp4", "int8": "int8"}.get(weights)
    return needed is None or needed in hardware.peak_flops
