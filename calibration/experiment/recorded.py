"""The requests of a run as they really came, where a file of them lies with the cases."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator
from pathlib import Path

from calibration.cases.serving import ServingCase
from sim.workload.traces import AUTO, read_trace

__all__ = ["recorded"]

_SAYS_SO = "realised arrivals in file"
_FILE = re.compile(r"\bper_request=(\S+)")


def recorded(case: ServingCase) -> Path | None:
    """Return the file of the requests of *case* that its row names, if the folder ``requests`` beside its own has it.

    Means over 2,000 Poisson arrivals differ by more than what is to be measured: for the time per token of the mixed
    lengths at 6 requests/s by 8 % (the standard deviation over seeds), for equal ones at 10 by 1.5 %. Of a saturated
    run, whose client waited, a file tells when requests were sent, and so how fast they were answered.
    """
    named = _FILE.search(case.text("notes"))
    if named is None or case.folder is None or _SAYS_SO not in case.text("arrival") or case.text("quality") != "ok":
        return None
    candidates = _candidates(case.folder.parent / "requests", Path(named[1]).name)
    return next((path for path in candidates if _is_of(case, path)), None)


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    """Yield the file of that *name*, under any prefix, and those of other arms that were sent the same requests."""
    yield from sorted(folder.glob(f"*{name}"))
    run, _, _ = name.rpartition("__")
    yield from sorted(folder.glob(f"*{run}__*"))


def _is_of(case: ServingCase, path: Path) -> bool:
    """Tell whether *path* has as many requests as *case*, and prompts of the same mean."""
    requests, mean = _requests(path)
    return requests == case.whole("num_requests") and math.isclose(mean, case.number("input_len") or 0.0, rel_tol=1e-6)


@functools.cache
def _requests(path: Path) -> tuple[int, float]:
    """Return the number of requests, and the mean length of their prompts [tokens]."""
    rows = read_trace(path, AUTO, None).rows
    return len(rows), sum(row.input_tokens for row in rows) / len(rows)
