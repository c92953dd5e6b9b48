"""Runs the program as a user does, and counts the CPU seconds of the whole process."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Cost", "cost_of", "heading", "simulated"]

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Cost:
    """The least CPU time of several runs of one command [s], its peak memory [bytes] and what it printed."""

    cpu_s: float
    peak_bytes: int
    output: str


def cost_of(arguments: Sequence[str], repeats: int = 3) -> Cost:
    """Run ``python *arguments*`` *repeats* times in processes of their own."""
    runs = [_once(arguments) for _ in range(repeats)]
    return min(runs, key=lambda run: run.cpu_s)


def _once(arguments: Sequence[str]) -> Cost:
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, *arguments], stdout=output, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(arguments)} ended with status {process.returncode}")
        output.seek(0)
        return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, output.read())


def simulated(experiment: str, overrides: Iterable[str] = (), repeats: int = 3) -> tuple[Cost, dict[str, Any]]:
    """Run an *experiment*, given as YAML text, with all metrics; return its cost and its result."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "benchmark.yaml")
        path.write_text(experiment, encoding="utf-8")
        settings = [part for override in overrides for part in ("--set", override)]
        cost = cost_of(["-m", "sim", "run", str(path), "--format", "json", "--quiet", *settings], repeats)
    return cost, json.loads(cost.output)


def heading(title: str) -> None:
    """Print *title* and the machine."""
    cpu = next((line.split(": ")[1] for line in _cpuinfo() if line.startswith("model name")), platform.processor())
    print(f"{title}\n{cpu}, {os.cpu_count()} cores, Python {platform.python_version()}\n")


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
