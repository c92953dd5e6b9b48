"""Kills commands at random moments and looks at what they leave, then lets them go on and compares with a run in peace.

::

    python tests/kill/run.py --kills 100          # the full run
    python tests/kill/run.py --kills 5 --job sweep

Every file must be whole or absent. What goes on must end with the same bytes as in peace, compute nothing again that
was kept, and leave nothing behind. Exit status 0: it was so after every kill.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from small_search import TEXT as SEARCH  # noqa: E402
from small_study import TEXT as STUDY  # noqa: E402

_CASES = """\
case_id,engine,engine_version,gpu,n_gpus,tp,mode,model,input_len,output_len,load_type,load_value,num_requests,quality,\
ttft_mean_ms,tpot_mean_ms
a,vllm,0.15.1,H100-SXM-80GB,1,1,agg,meta-llama/Llama-3.1-8B-Instruct,200,20,concurrency,1,6,ok,30,8
b,vllm,0.15.1,H100-SXM-80GB,1,1,agg,meta-llama/Llama-3.1-8B-Instruct,800,20,concurrency,2,6,ok,60,8.5
c,vllm,0.15.1,H100-SXM-80GB,1,1,agg,meta-llama/Llama-3.1-8B-Instruct,400,20,concurrency,4,12,ok,70,9
"""
_LONGEST_S = 600
_FIELDS_OF_TIME = ("wall_s",)
_LITTLE_S = 0.05
"""Time after the first sign of a file in which half of the kills fall: the moments of writing are short."""


@dataclass(frozen=True)
class Job:
    """A command of two.

    Attributes
    ----------
    input
        Text of its input file, which the command names as ``{input}``; ``{out}`` is the folder that it writes.
    goes_on
        Options that let it go on after a kill.
    kept
        Pattern of the files below the folder, or the cache, that keep what is done: they are not written again.
    """

    command: str
    input: str
    goes_on: str = ""
    kept: str = ""


JOBS = {
    "run": Job("sim run {input} --out {out} --quiet", STUDY.format(sweep="{seed: [1]}", requests=3000)),
    "sweep": Job(
        "sim sweep {input} --out {out} --workers 1 --no-cache",
        STUDY.format(sweep="{workload.arrivals.rate: [1, 2, 3, 4, 5, 6, 7, 8]}", requests=1000),
        "--resume",
        "out/_points/*.parquet",
    ),
    "search": Job(
        "sim search {input} --out {out} --quiet",
        SEARCH.format(
            arrivals="{kind: poisson, rate: 4}",
            requests=400,
            slo="{ttft_p90: 200 ms, tpot_p90: 12 ms}",
            search="{kind: capacity}",
        ),
        kept="cache/points/*/*.json",
    ),
    "fit": Job("calibration fit {input} -o {out}/vllm.yaml", _CASES),
}


def main() -> int:
    """Kill and report."""
    options = _options()
    random, wrong, begun_s = Random(options.seed), [], time.monotonic()
    with TemporaryDirectory(prefix="servecast-kill-") as folder:
        for name in options.job or JOBS:
            kills = options.kills // len(options.job or JOBS)
            trial = Trial(name, Path(folder) / name)
            found = [problem for number in range(kills) for problem in trial.kill(number, random)]
            wrong += found
            print(f"{name:8} {kills} kills, {trial.survived} after its end, {trial.in_writing} while it wrote")
            for problem in found:
                print(f"    {problem}")
    print(f"{len(wrong)} problems in {time.monotonic() - begun_s:.0f} s")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of all jobs together (20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--job", action="append", choices=list(JOBS), help="only this one; repeatable")
    return parser.parse_args()


class Trial:
    """One job, which has run in peace once."""

    def __init__(self, name: str, folder: Path) -> None:
        self.job, self.folder = JOBS[name], folder
        self.survived = self.in_writing = 0
        peace = folder / "peace"
        began_s = time.monotonic()
        if problems := self._finish(self._start(peace, "")):
            raise SystemExit(f"{name}: {problems[0]}: {(peace / 'stderr').read_text(encoding='utf-8')}")
        self.takes_s = time.monotonic() - began_s
        self.expected = _contents(peace / "out")

    def kill(self, number: int, random: Random) -> list[str]:
        """Kill it once, let it go on, and return what is wrong."""
        place = self.folder / str(number)
        process = self._start(place, "")
        if random.random() < 0.5:
            self._wait(process, lambda: any(_files(place / "out")) or any(_files(place / "cache")), self.takes_s * 3)
            time.sleep(random.uniform(0, _LITTLE_S))
        else:
            self._wait(process, lambda: False, random.uniform(0, self.takes_s))
        self.survived += process.poll() is not None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.in_writing += any(path.name.startswith(".") for path in _files(place / "out"))
        wrong = [f"kill {number}: {problem}" for problem in _broken(place)]
        kept = {path: path.stat().st_mtime_ns for path in place.glob(self.job.kept)} if self.job.kept else {}
        again = self._watch(self._start(place, self.job.goes_on), kept)
        return wrong + [f"kill {number}: {problem}" for problem in (*again, *self._different(place))]

    def _start(self, place: Path, options: str) -> subprocess.Popen[bytes]:
        (place / "out").mkdir(parents=True, exist_ok=True)
        path = place / ("input.csv" if self.job.input.startswith("case_id") else "input.yaml")
        path.write_text(self.job.input, encoding="utf-8")
        words = f"{self.job.command.format(input=path, out=place / 'out')} {options}".split()
        environment = os.environ | {"SERVECAST_CACHE": str(place / "cache")}
        with (place / "stderr").open("wb") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", *words],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=ROOT,
                env=environment,
                start_new_session=True,
            )

    def _wait(self, process: subprocess.Popen[bytes], until: Callable[[], bool], longest_s: float) -> None:
        end_s = time.monotonic() + longest_s
        while time.monotonic() < end_s and process.poll() is None and not until():
            time.sleep(0.002)

    def _watch(self, process: subprocess.Popen[bytes], kept: dict[Path, int]) -> list[str]:
        """Let it end, and return which of the *kept* files it wrote again."""
        written: set[Path] = set()
        while process.poll() is None:
            written |= {path for path, at_ns in kept.items() if path.exists() and path.stat().st_mtime_ns != at_ns}
            time.sleep(0.01)
        return [f"{path.name} was computed again" for path in written] + self._finish(process)

    def _finish(self, process: subprocess.Popen[bytes]) -> list[str]:
        status = process.wait(timeout=_LONGEST_S)
        return [] if status == 0 else [f"ended with {status}"]

    def _different(self, place: Path) -> list[str]:
        found = _contents(place / "out")
        names = sorted(found.keys() ^ self.expected.keys())
        changed = [name for name in found.keys() & self.expected.keys() if found[name] != self.expected[name]]
        return [f"{name} is there in one of the two" for name in names] + [f"{name} differs" for name in changed]


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []


def _contents(folder: Path) -> dict[str, bytes | object]:
    """Return what each file says, but for how long that took."""
    return {str(path.relative_to(folder)): _said(path) for path in _files(folder)}


def _said(path: Path) -> object:
    content = path.read_bytes()
    if path.name != "result.json":
        return content
    values = json.loads(content)
    return {key: value for key, value in values.items() if key not in _FIELDS_OF_TIME}


def _broken(place: Path) -> list[str]:
    """Return which files are neither whole nor hidden, which is how a file is called until it is whole."""
    return [
        f"{path.relative_to(place)} is broken: {problem}"
        for path in (*_files(place / "out"), *_files(place / "cache"))
        if not path.name.startswith(".") and (problem := _problem(path))
    ]


def _problem(path: Path) -> str:
    try:
        match path.suffix:
            case ".json":
                json.loads(path.read_bytes())
            case ".parquet":
                from pyarrow import parquet

                parquet.read_table(path)
            case ".yaml":
                from sim.yamlfile import read_yaml

                read_yaml(path)
            case ".html":
                assert path.read_text(encoding="utf-8").rstrip().endswith("</div>"), "it has no end"
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
