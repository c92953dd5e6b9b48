"""``python -m calibration.kernels.layer_profiles FOLDER GPU -o kernels.csv``: layer times of a simulator's profiler.

LLMServingSim publishes what its profiler measured on RTX 4090 and RTX PRO 6000 cards, layer by layer in microseconds.
Its matrix products, and attention of decodes or of prompts alone, become rows that ``calibration fit`` takes.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from calibration.kernels.measured import KernelRow
from calibration.kernels.published import run_command
from sim.profiles.layers import DenseMlp, GroupedAttention
from sim.profiles.library import load_model
from sim.profiles.model import Model

__all__ = ["main", "rows"]

_NAMES = {"RTX4090": "RTX-4090", "RTXPRO6000": "RTX-PRO-6000-Server"}
_SOURCE = "LLMServingSim profiler, bf16, tp 1"

_Cells = dict[str, str]


def rows(folder: Path, gpu: str) -> Iterator[KernelRow]:
    """Yield the times that *folder* has of *gpu* (``RTX4090``, ``RTXPRO6000``) without tensor parallelism."""
    dense, single, attention = (
        list(_own(folder / f"llmservingsim_profile_{name}", gpu))
        for name in ("dense.csv", "per_sequence.csv", "attention.csv.gz")
    )
    for name in sorted({cells["model"] for cells in attention}):
        model = load_model(name)
        layer = model.layers[0]
        if not isinstance(layer.attention, GroupedAttention) or not isinstance(layer.mlp, DenseMlp):
            continue
        yield from _products(gpu, model, layer.attention, layer.mlp, _of(name, dense))
        yield from _heads(gpu, model, _of(name, single))
        yield from _attention(gpu, layer.attention, _of(name, attention))


def _own(path: Path, gpu: str) -> Iterator[_Cells]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        yield from (cells for cells in csv.DictReader(file) if (cells["hardware"], cells["tp"]) == (gpu, "tp1"))


def _of(model: str, table: Iterable[_Cells]) -> Iterator[_Cells]:
    return (cells for cells in table if cells["model"] == model)


def _products(
    gpu: str, model: Model, attention: GroupedAttention, mlp: DenseMlp, table: Iterable[_Cells]
) -> Iterator[KernelRow]:
    hidden, width = model.hidden_size, attention.heads * attention.head_dim
    shapes = {
        "qkv_proj": (width + 2 * attention.kv_heads * attention.head_dim, hidden),
        "o_proj": (hidden, width),
        "gate_up_proj": (2 * mlp.intermediate, hidden),
        "down_proj": (hidden, mlp.intermediate),
    }
    for cells in table:
        if cells["layer"] in shapes:
            outputs, inputs = shapes[cells["layer"]]
            yield _row(gpu, "gemm", cells, m=int(cells["tokens"]), n=outputs, k=inputs)


def _heads(gpu: str, model: Model, table: Iterable[_Cells]) -> Iterator[KernelRow]:
    for cells in table:
        if cells["layer"] == "lm_head":
            yield _row(gpu, "gemm", cells, m=int(cells["sequences"]), n=model.vocab_size, k=model.hidden_size)


def _attention(gpu: str, attention: GroupedAttention, table: Iterable[_Cells]) -> Iterator[KernelRow]:
    sizes = {"heads": attention.heads, "kv_heads": attention.kv_heads, "head_dim": attention.head_dim}
    for cells in table:
        if cells["prefill_chunk"] == "0":
            batch, context = int(cells["n_decode"]), int(cells["kv_decode"])
            yield _row(gpu, "decode", cells, batch=batch, context=context, **sizes)
        elif cells["n_decode"] == cells["kv_prefill"] == "0":
            yield _row(gpu, "prefill", cells, batch=1, context=int(cells["prefill_chunk"]), **sizes)


def _row(gpu: str, operation: str, cells: _Cells, **shape: int) -> KernelRow:
    return KernelRow(_NAMES[gpu], operation, "bf16", seconds=float(cells["time_us"]) / 1e6, source=_SOURCE, **shape)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the rows of one accelerator; return the exit code."""
    return run_command(
        "calibration.kernels.layer_profiles", __doc__, "llmservingsim_profile_*.csv", rows, _NAMES, arguments
    )


if __name__ == "__main__":
    sys.exit(main())
