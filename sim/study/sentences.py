"""Differences between two deployments in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from sim.study.why import Anatomy
from sim.units import format_seconds

__all__ = ["Compared", "explain"]

Named = tuple[str, Anatomy]
_SMALL = 0.02
"""Differences below are not worth a sentence."""
_TELLING = 0.15
"""Parts of a difference below this share of it are left out."""


class Compared(Protocol):
    """A result of both, as `sim.study.compare.Difference` has it."""

    @property
    def base(self) -> float:
        """Of the one that is compared with."""

    @property
    def other(self) -> float:
        """Of the other."""

    @property
    def ratio(self) -> float:
        """The other over the base."""

    @property
    def sure(self) -> bool | None:
        """Whether they differ surely; None: not known."""


def explain(base: Named, other: Named, differences: Mapping[str, Compared]) -> Iterator[str]:
    """Yield what differs between *base* and *other*, and why, the most important first."""
    yield from _throughput(base, other, differences)
    yield from _first_token(base, other, differences)
    yield from _iteration(base, other, differences)
    yield from _capacity(base, other)
    yield from _money(other[0], base[0], differences)


def _throughput(base: Named, other: Named, differences: Mapping[str, Compared]) -> Iterator[str]:
    found = differences.get("output_throughput")
    if found is None:
        return
    if abs(found.ratio - 1) < _SMALL:
        both = f"{found.base:,.0f} and {found.other:,.0f}"
        yield f"{base[0]} and {other[0]} give about the same output tokens a second ({both})"
        return
    yield (
        f"{other[0]} gives {_times(found.ratio)} the output tokens a second of {base[0]}"
        f" ({found.base:,.0f} -> {found.other:,.0f}{_sureness(found)})"
    )


def _first_token(base: Named, other: Named, differences: Mapping[str, Compared]) -> Iterator[str]:
    found = differences.get("mean_ttft_ms")
    if found is None or abs(found.ratio - 1) < _SMALL:
        return
    gap_s = (found.other - found.base) / 1e3
    parts = {
        "in the queue": other[1].queue_s - base[1].queue_s,
        "computing the prompt": other[1].prompt_s - base[1].prompt_s,
    }
    told = _parts(parts, gap_s)
    text = f"first tokens come {_later(gap_s)} at {other[0]}{_sureness(found)}: {told}"
    if abs(parts["in the queue"]) >= _TELLING * abs(gap_s):
        text += f"; {base[0]} {_waiting(base[1])}, {other[0]} {_waiting(other[1])}"
    yield text


def _iteration(base: Named, other: Named, differences: Mapping[str, Compared]) -> Iterator[str]:
    one, two = base[1], other[1]
    if not one.iteration_s or abs(two.iteration_s / one.iteration_s - 1) < _SMALL:
        return
    gap_s = two.iteration_s - one.iteration_s
    text = (
        f"an iteration of {other[0]} takes {_times(two.iteration_s / one.iteration_s)} as long"
        f" ({format_seconds(one.iteration_s)} -> {format_seconds(two.iteration_s)})"
        f" with {two.running:,.3g} requests in it instead of {one.running:,.3g}"
    )
    names = dict.fromkeys((*one.operations_s, *two.operations_s))
    parts = {name: two.operations_s.get(name, 0.0) - one.operations_s.get(name, 0.0) for name in names}
    if told := _parts(parts, gap_s):
        text += f": {told}"
    found = differences.get("mean_tpot_ms")
    if found is not None:
        text += f"; time per output token {found.base:,.3g} -> {found.other:,.3g} ms{_sureness(found)}"
    yield text


def _capacity(base: Named, other: Named) -> Iterator[str]:
    one, two = base[1].kv_tokens, other[1].kv_tokens
    if one and two and abs(two / one - 1) >= _SMALL:
        yield f"the KV cache of {other[0]} holds {_times(two / one)} the tokens ({one:,} -> {two:,})"


def _money(other: str, base: str, differences: Mapping[str, Compared]) -> Iterator[str]:
    found = differences.get("cost_usd_per_mtok_output")
    if found is not None and abs(found.ratio - 1) >= _SMALL:
        yield (
            f"a million output tokens costs {_times(found.ratio)} as much at {other} as at {base}"
            f" (${found.base:,.3g} -> ${found.other:,.3g} at this load)"
        )


def _parts(parts: Mapping[str, float], whole: float) -> str:
    """Name the *parts* of the difference *whole* [s] that matter, the largest first."""
    telling = [(name, part) for name, part in parts.items() if abs(part) >= _TELLING * abs(whole)]
    telling.sort(key=lambda pair: -abs(pair[1]))
    return ", ".join(f"{_more(part)} {_in(name)}" for name, part in telling)


def _more(part_s: float) -> str:
    return f"{format_seconds(abs(part_s))} {'more' if part_s > 0 else 'less'}"


def _in(name: str) -> str:
    return name if name.startswith(("in ", "computing ")) else f"in {name}"


def _waiting(anatomy: Anatomy) -> str:
    if not anatomy.waits:
        return "never has a queue"
    what, share = max(anatomy.waits.items(), key=lambda pair: pair[1])
    return f"has a queue for {what} {share:.0%} of its busy time"


def _later(gap_s: float) -> str:
    return f"{format_seconds(abs(gap_s))} {'later' if gap_s > 0 else 'earlier'}"


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:,.0f} times"


def _sureness(found: Compared) -> str:
    return "; within noise" if found.sure is False else ""
