"""``python -m calibration.kernels.layer_profiles FOLDER GPU -o kernels.csv``: layer times of a simulator's profiler.

LLMServingSim publishes what its profiler measured on RTX 4090 and RTX PRO 6000 cards, layer by layer in microseconds.
Its matrix products, and attention of decodes or of prompts alone, become rows that ``calibration fit`` takes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from calibration.kernels.measured import KernelRow, as_csv
from sim.profiles.layers import DenseMlp, GroupedAttention
from sim.profiles.library import load_model
from sim.profiles.model import Model

__all__ = ["main", "rows"]

_NAMES = {"RTX4090": "RTX-4090", "RTXPRO6000": "RTX-PRO-6000-Server"}
_SOURCE = "LLMServingSim profiler, bf16, tp 1"


def rows(folder: Path, gpu: str) -> Iterator[KernelRow]:
    """Yield the times that *folder* has of *gpu* (``RTX4090``, ``RTXPRO6000``) without tensor parallelism."""
    dense, single, attention = (
        _own(pd.read_csv(folder / f"llmservingsim_profile_{name}"), gpu)
        for name in ("dense.csv", "per_sequence.csv", "attention.csv.gz")
    )
    for name in sorted(set(attention.model)):
        model = load_model(name)
        layer = model.layers[0]
        if not isinstance(layer.attention, GroupedAttention) or not isinstance(layer.mlp, DenseMlp):
            continue
        yield from _products(gpu, model, layer.attention, layer.mlp, dense[dense.model == name])
        yield from _heads(gpu, model, single[single.model == name])
        yield from _attention(gpu, layer.attention, attention[attention.model == name])


def _own(table: pd.DataFrame, gpu: str) -> pd.DataFrame:
    return table[(table.hardware == gpu) & (table.tp == "tp1")]


def _products(
    gpu: str, model: Model, attention: GroupedAttention, mlp: DenseMlp, table: pd.DataFrame
) -> Iterator[KernelRow]:
    hidden, width = model.hidden_size, attention.heads * attention.head_dim
    shapes = {
        "qkv_proj": (width + 2 * attention.kv_heads * attention.head_dim, hidden),
        "o_proj": (hidden, width),
        "gate_up_proj": (2 * mlp.intermediate, hidden),
        "down_proj": (hidden, mlp.intermediate),
    }
    for row in table[table.layer.isin(list(shapes))].itertuples():
        outputs, inputs = shapes[str(row.layer)]
        yield _row(gpu, "gemm", float(row.time_us), m=int(row.tokens), n=outputs, k=inputs)


def _heads(gpu: str, model: Model, table: pd.DataFrame) -> Iterator[KernelRow]:
    for row in table[table.layer == "lm_head"].itertuples():
        yield _row(gpu, "gemm", float(row.time_us), m=int(row.sequences), n=model.vocab_size, k=model.hidden_size)


def _attention(gpu: str, attention: GroupedAttention, table: pd.DataFrame) -> Iterator[KernelRow]:
    sizes = {"heads": attention.heads, "kv_heads": attention.kv_heads, "head_dim": attention.head_dim}
    for row in table[table.prefill_chunk == 0].itertuples():
        yield _row(gpu, "decode", float(row.time_us), batch=int(row.n_decode), context=int(row.kv_decode), **sizes)
    for row in table[(table.n_decode == 0) & (table.kv_prefill == 0)].itertuples():
        yield _row(gpu, "prefill", float(row.time_us), batch=1, context=int(row.prefill_chunk), **sizes)


def _row(gpu: str, operation: str, time_us: float, **shape: int) -> KernelRow:
    return KernelRow(_NAMES[gpu], operation, "bf16", seconds=time_us / 1e6, source=_SOURCE, **shape)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the rows of one accelerator; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m calibration.kernels.layer_profiles", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder with llmservingsim_profile_*.csv")
    parser.add_argument("gpu", choices=_NAMES)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    options.output.write_text(as_csv(rows(options.folder, options.gpu)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
