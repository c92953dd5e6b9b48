"""``calibration microbench -o FILE``."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from calibration.commands.output import deliver, writable
from sim.errors import UserError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="CSV file that `calibration fit` takes")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, ...; cpu times this machine's processor (cuda)")
    parser.add_argument("--gpu", metavar="NAME", help="hardware profile; missing: as the driver names the device")
    parser.add_argument("--ranks", type=int, metavar="N", help="accelerators of the all-reduce; missing: all, 1: none")
    parser.add_argument("--tiny", action="store_true", help="a few small shapes, to see whether it runs")


def run(options: argparse.Namespace) -> int:
    """Time the kernels and write a row for each shape."""
    writable(options.output)
    torch = _torch(options.device)
    from calibration.kernels.measured import as_csv
    from calibration.microbench import shapes
    from calibration.microbench.all_reduce import all_reduces
    from calibration.microbench.kernels import rows_of

    on_gpu = options.device.startswith("cuda")
    grid = shapes.TINY if options.tiny else shapes.FULL
    gpu = options.gpu or (torch.cuda.get_device_name(options.device) if on_gpu else "cpu")
    source = f"calibration microbench, torch {torch.__version__}"
    rows = []
    for row in rows_of(options.device, grid, gpu, source):
        rows.append(row)
        sys.stderr.write(f"\r{len(rows)} shapes, {row.operation} {row.dtype}      ")
    ranks = options.ranks or (torch.cuda.device_count() if on_gpu else 1)
    if ranks > 1:
        rows += all_reduces(options.device, ranks, grid.messages, gpu, source)
    sys.stderr.write("\n")
    deliver(as_csv(rows), options.output)
    return 0


def _torch(device: str) -> Any:
    """Return PyTorch; raise `UserError` where it is not installed, or does not reach the *device*."""
    try:
        import torch
    except ImportError:
        raise UserError("PyTorch is not installed: pip install 'servecast[gpu]'") from None
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"PyTorch {torch.__version__} reaches no GPU here; --device cpu times the processor")
    if device.startswith("cuda") and int(device.partition(":")[2] or 0) >= torch.cuda.device_count():
        raise UserError(f"no device {device}: there are {torch.cuda.device_count()}")
    return torch
