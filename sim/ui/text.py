"""Words for a page that reads Markdown, in which somebody else's must not draw: an image would ask for its address."""

from __future__ import annotations

from sim.errors import SimError
from sim.ui.uploads import plain

__all__ = ["dollars", "plainly", "told"]

_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "$[]<>*`!~"})


def dollars(text: str) -> str:
    """Return *text* with dollars that are no formula."""
    return text.replace("$", "\\$")


def plainly(text: str) -> str:
    """Return somebody else's *text* so that it is shown letter by letter."""
    return text.translate(_SIGNS)


def told(error: SimError) -> str:
    """Return what *error* says, letter by letter and without the folders of the server."""
    return plainly(plain(error))
