"""Feeds made-up and damaged files to everything that reads a user's input, and says what went wrong.

::

    python tests/fuzz/run.py --inputs 1000000           # the full run
    python tests/fuzz/run.py --inputs 5000 --parser trace --seed 7

A parser may refuse an input by a `SimError`, in one line, and nothing else. It must not take 10 s, allocate 2 GiB,
write outside of its folder, run code, start a program or open a connection. Exit status 0: nothing like it was seen.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fuzz.parsers import PARSERS  # noqa: E402

_MEMORY_DISK = "/dev/shm"
_MOST_DEATHS = 50

Report = dict[str, Any]


def main() -> int:
    """Run and report."""
    options = _options()
    names = options.parser or list(PARSERS)
    total = sum(PARSERS[name].weight for name in names)
    plan = {name: max(1, round(options.inputs * PARSERS[name].weight / total)) for name in names}
    with TemporaryDirectory(
        prefix="servecast-fuzz-", dir=_MEMORY_DISK if os.path.isdir(_MEMORY_DISK) else None
    ) as folder:
        reports = _fed(plan, options.seed, Path(folder))
    _show(reports)
    if options.json:
        Path(options.json).write_text(json.dumps(reports, indent=1), encoding="utf-8")
    return 1 if any(report["faults"] for report in reports.values()) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=20_000, help="inputs of all parsers together (20000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--parser", action="append", choices=list(PARSERS), help="only this one; repeatable")
    parser.add_argument("--json", metavar="FILE", help="write counts and faults there, with the smallest input of each")
    return parser.parse_args()


def _fed(plan: dict[str, int], seed: int, folder: Path) -> dict[str, Report]:
    """Feed all parsers of a *plan* of inputs, in a process that is started again where it dies."""
    reports: dict[str, Report] = {}
    for death in range(_MOST_DEATHS):
        left = {name: count - reports.get(name, {}).get("inputs", 0) for name, count in plan.items()}
        left = {name: count for name, count in left.items() if count > 0}
        if not left:
            break
        _one_process(reports, left, f"{seed} {death}", folder / str(death))
    return reports


def _one_process(reports: dict[str, Report], left: dict[str, int], seed: str, folder: Path) -> None:
    """Add to *reports* what one process found, also where it was killed."""
    folder.mkdir()
    command = [sys.executable, str(Path(__file__).with_name("worker.py")), json.dumps(left), seed, str(folder)]
    process = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, check=False)
    for name in left:
        if (path := folder / f"{name}.json").exists():
            reports[name] = _sum(reports.get(name), json.loads(path.read_text(encoding="utf-8")))
    if process.returncode:
        name = (folder / "now").read_text(encoding="utf-8") if (folder / "now").exists() else next(iter(left))
        reports[name] = _sum(reports.get(name), _death(process, folder / name / "files" / PARSERS[name].file))


def _death(process: subprocess.CompletedProcess[bytes], current: Path) -> Report:
    """Return the report of the one input that was too much."""
    content = current.read_bytes() if current.exists() else b""
    said = process.stderr.decode(errors="replace").strip().splitlines()
    where = next((line.strip() for line in said if "/sim/" in line or "/calibration/" in line), " | ".join(said[-2:]))
    fault = {"what": f"died with {process.returncode}", "where": where, "content": repr(content[:2000])}
    return {"inputs": 1, "refused": 0, "cpu_s": 0.0, "slowest_s": 0.0, "faults": [fault]}


def _sum(one: Report | None, other: Report) -> Report:
    if one is None:
        return other
    known = {(fault["what"], fault["where"]) for fault in one["faults"]}
    new = [fault for fault in other["faults"] if (fault["what"], fault["where"]) not in known]
    sums = {key: one[key] + other[key] for key in ("inputs", "refused", "cpu_s")}
    return {**sums, "slowest_s": max(one["slowest_s"], other["slowest_s"]), "faults": one["faults"] + new}


def _show(reports: dict[str, Report]) -> None:
    for name, report in reports.items():
        share = report["refused"] / report["inputs"]
        times = f"{report['cpu_s']:7.1f} s of CPU, the slowest {report['slowest_s']:.2f} s"
        print(f"{name:22}{report['inputs']:10,} inputs, {share:4.0%} refused, {times}")
        for fault in report["faults"]:
            print(f"    {fault['what']} at {fault['where']}: {fault['content'][:300]}")
    inputs, cpu_s, faults = (sum(map(count, reports.values())) for count in (_inputs, _cpu_s, _faults))
    print(f"{inputs:,.0f} inputs, {cpu_s:,.0f} s of CPU, {faults:.0f} kinds of faults")


def _inputs(report: Report) -> float:
    return int(report["inputs"])


def _cpu_s(report: Report) -> float:
    return float(report["cpu_s"])


def _faults(report: Report) -> float:
    return len(report["faults"])


if __name__ == "__main__":
    sys.exit(main())
