"""The border of a monotone yes-or-no question over whole numbers, with few questions."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["first_true", "last_true"]


def last_true(test: Callable[[int], bool], start: int, low: int, high: int, stride: int = 1) -> int | None:
    """Return the highest number in ``[low, high]`` that passes *test*, which no higher one than a failing one does.

    From *start* on, strides grow until the border is enclosed, then halve. None: not even *low* passes.
    """
    negated = first_true(lambda place: not test(place), start, low, high, stride)
    if negated is None:
        return high
    return negated - 1 if negated > low else None


def first_true(test: Callable[[int], bool], start: int, low: int, high: int, stride: int = 1) -> int | None:
    """Return the lowest number in ``[low, high]`` that passes *test*, as do all higher ones; None: none does."""
    place = min(max(start, low), high)
    if test(place):
        passing, failing = place, low - 1
        while passing - failing > 1:
            below = max(passing - stride, low)
            if not test(below):
                failing = below
                break
            passing, stride = below, 2 * stride
    else:
        passing, failing = high + 1, place
        while passing - failing > 1:
            above = min(failing + stride, high)
            if test(above):
                passing = above
                break
            failing, stride = above, 2 * stride
    while passing - failing > 1:
        middle = (passing + failing) // 2
        passing, failing = (middle, failing) if test(middle) else (passing, middle)
    return passing if passing <= high else None
