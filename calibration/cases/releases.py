"""Which release of an engine was current when a run took place that does not name its own.

Dates are those of the releases on the Python package index; patch releases only where a profile tells them apart.
"""

from __future__ import annotations

from bisect import bisect_right

__all__ = ["current_release"]

_MID_YEAR = "-07"
_RELEASED = {
    "vllm": (
        *(("2023-09-28", "0.2"), ("2024-01-31", "0.3"), ("2024-03-31", "0.4"), ("2024-06-11", "0.5")),
        *(("2024-09-05", "0.6"), ("2024-12-18", "0.6.5"), ("2025-01-27", "0.7"), ("2025-03-18", "0.8")),
        *(("2025-04-28", "0.8.5"), ("2025-05-28", "0.9"), ("2025-07-25", "0.10"), ("2025-10-04", "0.11")),
        *(("2025-11-19", "0.11.1"), ("2025-12-03", "0.12"), ("2025-12-19", "0.13"), ("2026-01-20", "0.14")),
        *(("2026-01-29", "0.15"), ("2026-02-26", "0.16"), ("2026-03-07", "0.17"), ("2026-03-20", "0.18")),
        *(("2026-04-03", "0.19"), ("2026-04-27", "0.20"), ("2026-05-15", "0.21"), ("2026-05-29", "0.22")),
        *(("2026-06-15", "0.23"), ("2026-06-30", "0.24"), ("2026-07-11", "0.25"), ("2026-07-25", "0.26")),
        *(("2026-08-10", "0.27"), ("2026-08-26", "0.28"), ("2026-09-09", "0.29"), ("2026-09-22", "0.30")),
        *(("2026-10-05", "0.31"), ("2026-10-18", "0.32"), ("2026-11-02", "0.33")),
    ),
    "sglang": (
        *(("2024-09-03", "0.3"), ("2024-12-03", "0.4"), ("2025-08-23", "0.5.1"), ("2025-11-06", "0.5.5")),
        *(("2026-02-23", "0.5.9"), ("2026-06-11", "0.5.13"), ("2026-08-21", "0.5.18"), ("2026-10-30", "0.5.23")),
    ),
    "tensorrt-llm": (
        *(("2024-02-29", "0.8"), ("2024-07-17", "0.11"), ("2024-12-24", "0.16"), ("2025-06-19", "0.20")),
        *(("2025-09-24", "1.0"), ("2025-12-19", "1.1"), ("2026-03-12", "1.2")),
    ),
}


def current_release(engine: str, date: str) -> str | None:
    """Return the newest release at *date*, such as ``2025-11-30``, a month or a year; None where that is not known.

    Of a year, its middle counts; before the first release that is listed, that one.
    """
    known = _RELEASED.get(engine)
    if known is None or not date:
        return None
    until = f"{date}{_MID_YEAR}" if len(date) == 4 else date
    return known[max(0, bisect_right([day for day, _ in known], until) - 1)][1]
