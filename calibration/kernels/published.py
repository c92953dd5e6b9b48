"""The command of those who read published kernel times: rows of one accelerator that ``calibration fit`` takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from calibration.kernels.measured import KernelRow, as_csv
from sim.wholefile import write_whole

__all__ = ["run_command"]


def run_command(
    module: str,
    description: str,
    files: str,
    rows: Callable[[Path, str], Iterable[KernelRow]],
    gpus: Iterable[str],
    arguments: Sequence[str] | None,
) -> int:
    """Run ``python -m MODULE`` on *arguments*; return the exit code.

    It writes what *rows* finds of one of *gpus* in a folder with *files*; *description* is what its help says of it.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=description)
    parser.add_argument("folder", type=Path, help=f"folder with {files}")
    parser.add_argument("gpu", choices=tuple(gpus))
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    write_whole(options.output, as_csv(rows(options.folder, options.gpu)).encode())
    return 0
