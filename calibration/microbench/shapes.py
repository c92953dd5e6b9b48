"""Which shapes are timed: those of models from 1 to 70 billion parameters, and tiny ones to try the program."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

__all__ = ["FULL", "TINY", "Shapes"]


@dataclass(frozen=True, slots=True)
class Shapes:
    """Grids of each operation; see `calibration.kernels.measured.KernelRow` for what the numbers are."""

    rows: tuple[int, ...]
    products: tuple[tuple[int, int], ...]
    decode: tuple[tuple[int, int], ...]
    prefill: tuple[tuple[int, int], ...]
    heads: tuple[tuple[int, int, int], ...]
    copies: tuple[int, ...]
    tokens: tuple[int, ...]
    experts: tuple[tuple[int, int, int, int], ...]
    messages: tuple[int, ...]


FULL = Shapes(
    rows=(1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
    products=((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (8192, 8192), (14336, 8192), (8192, 7168)),
    decode=tuple(itertools.product((1, 8, 32, 128), (512, 2048, 8192, 32768))),
    prefill=tuple(itertools.product((1, 4), (256, 512, 1024, 2048, 4096, 8192))),
    heads=((32, 8, 128), (8, 1, 128), (64, 8, 128)),
    copies=tuple(2**power for power in range(16, 30, 2)),
    tokens=(1, 4, 16, 64, 256, 1024, 4096),
    experts=((8, 2, 4096, 3584), (128, 8, 2048, 768), (64, 8, 2048, 1024)),
    messages=tuple(2**power for power in range(12, 29)),
)
TINY = Shapes(
    rows=(1, 8, 64),
    products=tuple(itertools.product((512, 1024), (512, 1024, 2048))),
    decode=((1, 256), (4, 256), (4, 1024)),
    prefill=((1, 256), (2, 256), (1, 512)),
    heads=((4, 2, 64), (2, 1, 64)),
    copies=(2**16, 2**18, 2**20),
    tokens=(1, 16),
    experts=((4, 2, 256, 128),),
    messages=tuple(2**power for power in range(10, 20)),
)
