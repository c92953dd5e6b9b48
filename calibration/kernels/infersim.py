"""``python -m calibration.kernels.infersim FOLDER GPU -o kernels.csv``: kernel times that Alibaba's InferSim publishes.

Of H20 and H800: products with 8-bit weights in blocks (DeepGEMM), and attention of decodes and of prompts in 16 bits.
They become rows that ``calibration fit`` takes.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from calibration.kernels.measured import KernelRow
from calibration.kernels.published import run_command

__all__ = ["main", "rows"]

_NAMES = {"h20": "H20-96GB", "h800": "H800-SXM-80GB"}
_SOURCE = "alibaba/InferSim kernel tables"

_Cells = dict[str, str]


def rows(folder: Path, gpu: str) -> Iterator[KernelRow]:
    """Yield the times that *folder* has of *gpu* (``h20``, ``h800``)."""
    for cells in _own(folder / "infersim_gemm.csv", gpu):
        yield _row(gpu, "gemm", "fp8_block", cells, **{name: int(cells[name]) for name in ("m", "n", "k")})
    for cells in _own(folder / "infersim_kernels.csv", gpu):
        if (cells["op"], cells["dtype"]) == ("mha", "bf16") and cells["kv_dtype"] in ("", "bf16"):
            yield _row(gpu, cells["phase"], "bf16", cells, **_attention(cells))


def _own(path: Path, gpu: str) -> Iterator[_Cells]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from (cells for cells in csv.DictReader(file) if cells["gpu"] == gpu)


def _attention(cells: _Cells) -> dict[str, int]:
    """Return the shape of attention; prompts stand alone."""
    heads, kv_heads, head_dim = map(int, cells["shape_file"].split("-"))
    batch = 1 if cells["phase"] == "prefill" else int(cells["batch_size"])
    sizes = {"heads": heads, "kv_heads": kv_heads, "head_dim": head_dim}
    return sizes | {"batch": batch, "context": int(cells["seq_or_kv_len"])}


def _row(gpu: str, operation: str, dtype: str, cells: _Cells, **shape: int) -> KernelRow:
    return KernelRow(_NAMES[gpu], operation, dtype, seconds=float(cells["latency_us"]) / 1e6, source=_SOURCE, **shape)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the rows of one accelerator; return the exit code."""
    return run_command("calibration.kernels.infersim", __doc__, "infersim_*.csv", rows, _NAMES, arguments)


if __name__ == "__main__":
    sys.exit(main())
