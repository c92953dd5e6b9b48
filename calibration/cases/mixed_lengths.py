"""Runs that mixed requests of a few fixed lengths, such as ``workload=50% 256/128 + 50% 4096/128``."""

from __future__ import annotations

import re
from typing import NamedTuple

from calibration.cases.serving import ServingCase

__all__ = ["Part", "mixed_lengths"]

_WORKLOAD = re.compile(r"\bworkload=(\d+% \d+/\d+(?: \+ \d+% \d+/\d+)+)")
_PART = re.compile(r"(\d+)% (\d+)/(\d+)")


class Part(NamedTuple):
    """A share of the requests, all of one length [tokens]."""

    share: float
    input_tokens: int
    output_tokens: int


def mixed_lengths(case: ServingCase) -> list[Part]:
    """Return the parts of the mix that the notes of *case* state; none for any other case.

    What was asked for differs by a few per cent from what the server counted: the parts keep their ratio, and have the
    mean of the row.
    """
    stated = _WORKLOAD.search(case.text("notes"))
    if stated is None:
        return []
    parts = [tuple(map(int, part)) for part in _PART.findall(stated[1])]
    asked = sum(percent * prompt for percent, prompt, _ in parts) / 100
    scale = (case.number("input_len") or asked) / asked
    return [Part(percent / 100, round(prompt * scale), answer) for percent, prompt, answer in parts]
