"""Seconds from a change on the page Explore to its figures, in Debian's Chromium; see README.md.

A change counts as answered when the cards show new figures; charts follow them.
"""

from __future__ import annotations

import functools
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parents[1] / "tests" / "support")]
from browser import Visitor, server  # noqa: E402  # the tests' own browser

CHANGES: dict[str, tuple[str, str]] = {
    "another GPU": ("GPU", "H200-SXM-141GB"),
    "three replicas": ("Replicas", "3"),
    "eight-way tensor parallel": ("TP", "8"),
    "16-bit weights": ("Weights", "bf16"),
    "16-bit KV cache": ("KV cache", "bf16"),
    "twice the rate": ("Rate [requests/s]", "8"),
    "a longer prompt mix": ("Lengths name", "rag"),
    "a smaller model": ("Model", "Qwen/Qwen3-8B"),
    "another engine": ("Engine kind", "sglang"),
    "bursts": ("Arrivals", "bursts"),
}
_CARDS = "[...document.querySelectorAll('[data-testid=stMetric]')]"
_FIGURES = f"{_CARDS}.map(card => card.innerText).join(' ')"


def main() -> None:
    """Print a line for each change, and the 90th percentile."""
    times = []
    with server() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        Visitor(browser, address).open().cards()  # the first visit of all loads the profiles
        for name, (label, value) in CHANGES.items():
            visitor = Visitor(browser, address).open()
            visitor.cards()
            seconds = seconds_of(visitor.page, functools.partial(change, visitor, label, value))
            times.append(seconds)
            print(f"{name:<28} {seconds:>6.2f} s")
            visitor.context.close()
        browser.close()
    times.sort()
    print(f"{'90th percentile':<28} {times[-2]:>6.2f} s")


def change(visitor: Visitor, label: str, value: str) -> None:
    """Set the field with that *label*, which is a number or a choice."""
    number = visitor.page.get_by_role("spinbutton", name=label, exact=True)
    if number.count():
        number.first.fill(value)
        number.first.press("Enter")
    else:
        visitor.choose(label, value)


def seconds_of(page: Page, act: Callable[[], None]) -> float:
    """Return the time from the end of *act* to new figures."""
    before = page.evaluate(_FIGURES)
    act()
    began = time.perf_counter()
    fresh = f"!{_CARDS}.some(card => card.closest('[data-stale=true]'))"
    page.wait_for_function(
        f"before => {_FIGURES} && {_FIGURES} !== before && {fresh}", arg=before, timeout=60_000, polling=20
    )
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
