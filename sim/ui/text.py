"""Words for a page that reads Markdown."""

from __future__ import annotations

__all__ = ["dollars", "plainly"]

_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "$[]<>*_`"})


def dollars(text: str) -> str:
    """Return *text* with dollars that are no formula."""
    return text.replace("$", "\\$")


def plainly(text: str) -> str:
    """Return somebody else's *text* so that it is shown letter by letter."""
    return text.translate(_SIGNS)
