"""Units: SI inside, the unit in the name, parsed and printed only at the edge.

Memory is binary at the edge (GiB) and bandwidths are decimal (GB/s), as engines and vendors print them.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator

__all__ = [
    "GB",
    "GIB",
    "KIB",
    "LARGEST",
    "MIB",
    "Bytes",
    "BytesPerSecond",
    "FlopsPerSecond",
    "Seconds",
    "format_bytes",
    "format_count",
    "format_seconds",
    "parse",
]

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
KB, MB, GB, TB = 1e3, 1e6, 1e9, 1e12

LARGEST = 1e18
"""Largest number, and one over the smallest, that is read: no quantity here is beyond, and within it none overflows."""

_SCALES = {
    "seconds": {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0},
    "bytes": {"B": 1, "kB": KB, "MB": MB, "GB": GB, "TB": TB, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB},
    "bytes/s": {"MB/s": MB, "GB/s": GB, "TB/s": TB, "Mb/s": MB / 8, "Gb/s": GB / 8},
    "operations/s": {"GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15, "TOP/s": 1e12},
}
_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([A-Za-z]+(?:/s)?)\s*")


def parse(text: str, dimension: str) -> float:
    """Read a number with a unit, such as ``50 ms`` or ``80 GiB``, in SI.

    Raise a `ValueError` that carries *text* if it has no unit of that *dimension* (``seconds``, ``bytes``,
    ``bytes/s`` or ``operations/s``).
    """
    scales = _SCALES[dimension]
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in scales:
        raise ValueError(f"{text!r} is not a number of {dimension}: write a number and one of {', '.join(scales)}")
    return float(match[1]) * scales[match[2]]


def _parsed(dimension: str) -> BeforeValidator:
    def convert(value: Any) -> Any:
        return parse(value, dimension) if isinstance(value, str) else value

    return BeforeValidator(convert)


Seconds = Annotated[float, _parsed("seconds")]
"""A time in seconds; a YAML may write ``50 ms``."""
Bytes = Annotated[float, _parsed("bytes")]
"""A size in bytes; a YAML may write ``80 GiB``."""
BytesPerSecond = Annotated[float, _parsed("bytes/s")]
"""A bandwidth in bytes per second; a YAML may write ``3.35 TB/s`` or, of a network, ``400 Gb/s``."""
FlopsPerSecond = Annotated[float, _parsed("operations/s")]
"""A rate of floating-point or integer operations; a YAML may write ``989.4 TFLOP/s``."""


def format_seconds(value_s: float) -> str:
    """Print a time with three digits and its fitting unit: ``12.3 ms``, ``1.50 s``, ``2.0 h``."""
    if not math.isfinite(value_s):
        return "-"
    for unit, scale in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        if abs(value_s) >= scale * (2 if scale >= 60 else 1):
            return f"{value_s / scale:.3g} {unit}"
    return f"{value_s * 1e6:.3g} us" if value_s else "0 s"


def format_bytes(value: float) -> str:
    """Print a size of memory in binary units: ``15.3 GiB``."""
    for unit, scale in (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(value) >= scale:
            return f"{value / scale:.4g} {unit}"
    return f"{value:.0f} B"


def format_count(value: float) -> str:
    """Print a count with thousands separators, or in billions and trillions above 10^9."""
    for unit, scale in (("T", 1e12), ("B", 1e9)):
        if abs(value) >= scale:
            return f"{value / scale:.4g}{unit}"
    return f"{value:,.0f}"
