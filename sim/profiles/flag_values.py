"""What the value of a flag means: the fields of an experiment that become it, and as what."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from sim.errors import did_you_mean
from sim.profiles.flags import ModelledFlag

__all__ = ["fields_meant"]

_SCALES = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SWITCHED = {None: True, "true": True, "false": False}
_SWITCHED_VARIABLE = _SWITCHED | {"1": True, "0": False}


def fields_meant(flag: ModelledFlag, name: str, text: str | None, *, negated: bool) -> dict[str, Any]:
    """Return the fields that *flag* stands for, written as *name*; None for one that is left out.

    Raise a `ValueError` for a value *text* that the flag does not take, or that is to be written as a field.
    """
    if text is not None and text in flag.instead:
        return flag.instead[text]
    if text is not None and text in flag.refused:
        raise ValueError(f"{name} {text} is refused: {flag.refused[text]}")
    if flag.write and text not in (flag.values or {}):
        raise ValueError(f"{name}: write {flag.field}, {flag.write}")
    meant = _meant(flag, name, text, negated=negated)
    if flag.alone is not None and len(meant) == 1:
        return {flag.alone: meant[0]}
    return {flag.field: meant}


def _meant(flag: ModelledFlag, name: str, text: str | None, *, negated: bool) -> Any:
    """Return what the field of *flag* becomes; None where it is left out."""
    if flag.on is not None:
        switches = _SWITCHED if name.startswith("-") else _SWITCHED_VARIABLE
        switched = switches.get(text if text is None else text.lower())
        if switched is None or (negated and text is not None):
            raise ValueError(f"{name} takes no value {text!r}")
        meant = flag.on if switched and not negated else flag.off
        if meant is None:
            raise ValueError(f"{name}: it cannot be turned off here")
        return meant
    if text is None or negated:
        raise ValueError(f"{name}: a value is missing" if not negated else f"{name}: it cannot be turned off")
    if flag.many:
        return [_number(part, counts=False) for part in re.split(r"[\s,]+", text.strip("[] "))]
    if flag.values is None:
        return _number(text, counts=flag.counts)
    if text not in flag.values:
        known = ", ".join(flag.values)
        raise ValueError(f"{name}: {text!r} is not modelled; known are {known}{did_you_mean(text, flag.values)}")
    return flag.values[text]


def _number(text: str, *, counts: bool) -> Any:
    """Return *text* as the number that it is, else as it is."""
    if counts and (scaled := re.fullmatch(r"(\d+)(\.\d+)?([kmgtKMGT])", text)):
        whole, part, scale = scaled.groups()
        if part is None or scale.islower():
            return int(Decimal(whole + (part or "")) * _SCALES[scale])
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
