"""Values of an experiment as widgets show and write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.ui.text import dollars
from sim.units import parse

__all__ = ["default_word", "help_of", "markdown", "plain_number", "si_number", "step_of", "word"]

_STEPS = ((2.0, 1.0), (0.2, 0.1), (0.0, 0.01))
"""Steps of small values, by the least value that they are for."""


def default_word(used: Any) -> str:
    """Return how a choice is called that leaves a value at what is *used* then."""
    return "default" if used in (None, "") else f"default: {word(used)}"


def word(value: Any) -> str:
    """Return a value of an experiment as a choice shows it."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def markdown(description: str) -> str | None:
    """Return a *description* so that its dollars are no formula; None of an empty one."""
    return dollars(description) or None


def help_of(text: str, models: Mapping[str, Any], kind: str | None) -> str | None:
    """Return what a choice is for, and what the chosen policy does."""
    about = (models[kind].__doc__ or "").strip().partition("\n\n")[0] if kind is not None and kind in models else ""
    return markdown("\n\n".join(part for part in (text, f"**{kind}**: {about}" if about else "") if part))


def si_number(value: Any) -> float | None:
    """Return a number of the experiment in SI; None where there is none, or a text without a sense."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value
    for dimension in ("seconds", "bytes", "bytes/s"):
        try:
            return parse(str(value), dimension)
        except ValueError:
            continue
    return None


def plain_number(value: float | None) -> float | None:
    """Return whole numbers as such, so that links and files stay short."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else value


def step_of(value: Any) -> float:
    """Return a step that changes *value* by about a tenth."""
    if not isinstance(value, int | float) or value <= 0:
        return 1.0
    if value >= 10:
        return 10.0 ** (len(str(int(value))) - 2)
    return next(step for least, step in _STEPS if value >= least)
