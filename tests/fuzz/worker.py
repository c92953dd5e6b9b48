"""Feeds one parser in a process with little memory, whose every move is watched: ``worker.py PLAN SEED FOLDER``."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
sys.dont_write_bytecode = True

from fuzz.faults import place_of, smallest  # noqa: E402
from fuzz.guard import Forbidden, Guard  # noqa: E402
from fuzz.parsers import PARSERS, Parser  # noqa: E402

from sim.errors import SimError  # noqa: E402

_LONGEST_S = 10.0
"""CPU time of one input: other programs may hold up the clock on the wall."""
_STUCK_S = 600.0
"""Time after which something waits for what never comes."""
_MEMORY = 2 << 30
_EVERY = 200
"""Inputs between two reports of progress."""

_READABLE = (
    *(str(ROOT), str(ROOT.parent / "shared"), sys.prefix, sys.base_prefix),
    *("/proc/self/", "/sys/", "/usr/", "/dev/null", "/dev/urandom"),
)
"""Folders that a page may read from, beside its uploads."""

Fault = tuple[str, str]
"""What went wrong, and where."""


class Feeder:
    """Gives inputs to one parser and keeps what it did wrong."""

    def __init__(self, name: str, folder: Path, guard: Guard) -> None:
        self.parser: Parser = PARSERS[name]
        self.folder, self.guard = folder / name, guard
        self.path = self.folder / "files" / self.parser.file
        self.path.parent.mkdir(parents=True)
        for beside, content in self.parser.beside().items():
            self.path.with_name(beside).write_bytes(content)
        self.report: dict[str, Any] = {"inputs": 0, "refused": 0, "cpu_s": 0.0, "slowest_s": 0.0, "faults": []}
        self.readable = _READABLE if self.parser.only_own_files else None
        self.seeds = self.parser.seeds()
        self._warm_up()

    def _warm_up(self) -> None:
        """Let everything be imported that a parser imports when it is needed."""
        for content in self.seeds[:3]:
            self.path.write_bytes(content)
            with suppress(SimError):
                self.parser.read(self.path)

    def feed_all(self, inputs: int, random: Random) -> None:
        """Give it that many inputs, and write down now and then what is known so far."""
        draw, progress = self.parser.inputs(self.seeds), self.folder.with_suffix(".json")
        for number in range(inputs):
            self.feed(draw(random))
            if number % _EVERY == 0:
                faulthandler.dump_traceback_later(_STUCK_S, exit=True)
                progress.write_text(json.dumps(self.report), encoding="utf-8")
        progress.write_text(json.dumps(self.report), encoding="utf-8")

    def feed(self, content: bytes) -> None:
        """Give it one input."""
        began_s = time.process_time()
        refused, fault = self.outcome_of(content)
        took_s = time.process_time() - began_s
        self.report["inputs"] += 1
        self.report["refused"] += refused
        self.report["cpu_s"] += took_s
        if took_s > self.report["slowest_s"]:
            self.report["slowest_s"] = took_s
            (self.folder / "slowest").write_bytes(content)
        if fault is not None and fault not in [(known["what"], known["where"]) for known in self.report["faults"]]:
            least = smallest(content, lambda shorter: self.outcome_of(shorter)[1] == fault)
            self.report["faults"].append({"what": fault[0], "where": fault[1], "content": repr(least[:2000])})

    def outcome_of(self, content: bytes) -> tuple[bool, Fault | None]:
        """Return whether the parser refuses *content*, and what it does wrong with it."""
        self.path.write_bytes(content)
        signal.setitimer(signal.ITIMER_PROF, _LONGEST_S)
        try:
            with self.guard.armed(self.path.parent, self.readable):
                self.parser.read(self.path)
        except SimError as refusal:
            return True, ("more than a line", place_of(refusal)) if "\n" in str(refusal) else None
        except Forbidden as problem:
            return False, (str(problem), place_of(problem))
        except Exception as problem:
            return False, (type(problem).__name__, place_of(problem))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return False, None


def _too_long(_signal: int, _frame: object) -> NoReturn:
    raise Forbidden(f"takes more than {_LONGEST_S:g} s")


def main() -> None:
    """Feed the parsers of a plan, one after the other."""
    plan, seed, folder = json.loads(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    warnings.simplefilter("error")
    signal.signal(signal.SIGPROF, _too_long)
    guard = Guard((sys.prefix, sys.base_prefix, str(ROOT), os.path.dirname(os.__file__)))
    for name, inputs in plan.items():
        (folder / "now").write_text(name, encoding="utf-8")
        feeder = Feeder(name, folder, guard)
        _limit_memory()
        feeder.feed_all(inputs, Random(f"{seed} {name}"))


def _limit_memory() -> None:
    """Allow 2 GiB beyond what is mapped now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _MEMORY, most))


if __name__ == "__main__":
    main()
