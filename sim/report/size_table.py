"""The memory of a card for people: what fills it, what it serves, and what to change where it does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sim.memory import MemoryPlan
from sim.profiles.engine_memory import ProfiledMemory
from sim.units import GIB, format_bytes

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from sim.report.size import Fit

__all__ = ["HEADROOM", "parts_of", "print_plan", "print_ranking"]

HEADROOM = (0.3, 0.5)
"""Shares of the KV cache to leave free for bursts and long answers, as planners of capacity advise."""

_BAR_WIDTH = 64
_NARROWEST = 80
_COLOURS = {
    "weights": ("W", "blue"),
    "activation peak": ("a", "magenta"),
    "outside the framework": ("o", "yellow"),
    "CUDA graphs": ("g", "cyan"),
    "states": ("s", "red"),
    "KV cache": ("K", "green"),
    "free": ("·", "bright_black"),
}
_CONTEXTS = (2048, 8192, 32768, 131072)


def parts_of(made: MemoryPlan) -> dict[str, float]:
    """Return what fills the first rank's card; the parts sum to its visible memory [B]."""
    rank = made.ranks[0]
    parts = {
        "weights": rank.weights_bytes,
        "activation peak": rank.activation_bytes,
        "outside the framework": rank.non_torch_bytes,
        "CUDA graphs": rank.cuda_graph_bytes,
        "states": rank.state_bytes,
        "KV cache": max(0.0, rank.kv_bytes),
    }
    return parts | {"free": rank.visible_bytes - sum(parts.values())}


def print_plan(made: MemoryPlan, nearest: Sequence[str], context: int | None) -> None:
    """Print one plan: a table of its parts, a bar of the card, and what the KV cache holds."""
    console = _console()
    deployment = made.deployment
    degrees = ", ".join(f"{name} {n}" for name, n in deployment.parallelism.model_dump().items() if n > 1)
    card = f"{deployment.parallelism.gpus} x {deployment.hardware.name}"
    console.print(f"{deployment.model.name} on {card}{f' ({degrees})' if degrees else ''}", style="bold")
    console.print(_parts_table(made))
    console.print(_bar(made))
    for line in _facts(made, context):
        console.print(f"  {line}")
    if made.fits:
        return
    console.print("  does not fit", style="bold red")
    for change in nearest:
        console.print(f"  would fit: {change}", style="green")


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.width = max(console.width, _NARROWEST)
    return console


def _parts_table(made: MemoryPlan) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("")
    table.add_column("on each card" if len(made.ranks) == 1 else "on the first card", no_wrap=True)
    table.add_column("GiB", justify="right")
    table.add_column("share", justify="right")
    visible = made.ranks[0].visible_bytes
    for name, size in parts_of(made).items():
        if size or name == "KV cache":
            sign, colour = _COLOURS[name]
            label, amount = ("lacking", -size) if size < 0 else (_label(name, made), size)
            table.add_row(sign, label, f"{amount / GIB:.2f}", f"{amount / visible:.1%}", style=colour)
    table.add_row("", "visible memory", f"{visible / GIB:.2f}", "")
    return table


def _label(name: str, made: MemoryPlan) -> str:
    engine = made.deployment.memory
    outside = isinstance(engine, ProfiledMemory) and not engine.cuda_graphs.subtracted
    return f"{name} (out of what the engine leaves free)" if name == "CUDA graphs" and outside else name


def _bar(made: MemoryPlan) -> Text:
    """Draw the card as one line, a letter a part; more than the card is drawn up to its edge."""
    from rich.text import Text

    visible = made.ranks[0].visible_bytes
    bar, drawn, upto = Text("  ["), 0, 0.0
    for name, size in parts_of(made).items():
        upto += max(0.0, size)
        width = min(_BAR_WIDTH, round(_BAR_WIDTH * upto / visible)) - drawn
        sign, colour = _COLOURS[name]
        bar.append(sign * width, style=colour)
        drawn += width
    return bar.append("]")


def _facts(made: MemoryPlan, context: int | None) -> Iterator[str]:
    """Yield what the KV cache holds, with the part of it that a plan should count on."""
    if not made.num_blocks:
        return
    growth = format_bytes(made.kv_bytes_per_token)
    yield f"KV cache: {made.kv_tokens:,} tokens in {made.num_blocks:,} blocks, {growth} a token on a card"
    longest = made.deployment.limits.max_model_len
    lengths = [context] if context else sorted({min(length, longest) for length in (*_CONTEXTS, longest)})
    low, high = (1 - share for share in reversed(HEADROOM))
    for length in lengths:
        held = made.concurrency(length)
        most = min(held, made.deployment.limits.max_num_seqs)
        limited = "" if held <= most else f" (max_num_seqs; the cache holds {held:,.0f})"
        fewest, largest = f"{most * low:,.0f}", f"{most * high:,.0f}"
        planned = f"plan for {fewest if fewest == largest else f'{fewest} to {largest}'}" if held >= 1 else "not one"
        yield f"sequences of {length:,} tokens at once: {most:,.1f}{limited}; {planned}"
    yield f"(with {HEADROOM[0]:.0%} to {HEADROOM[1]:.0%} of the KV cache as headroom for bursts and longer answers)"


def print_ranking(model: str, fits: Sequence[Fit], context: int) -> None:
    """Print every card with the smallest tp that holds *model*."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("card", "cards", "weights", "KV", "KV tokens", "sequences"):
        table.add_column(heading, justify="left" if heading == "card" else "right", no_wrap=True)
    for fit in fits:
        if fit.plan.fits:
            size = fit.plan.to_json()
            table.add_row(
                fit.plan.deployment.hardware.name,
                str(fit.plan.deployment.parallelism.gpus),
                f"{size['weights_gib']:,.1f}",
                f"{size['kv_gib']:,.1f}",
                f"{size['kv_tokens']:,}",
                f"{fit.plan.concurrency(context):,.1f}",
            )
    console = _console()
    console.print(f"{model}: the smallest tp that fits, on every card", style="bold")
    console.print(f"weights and KV are GiB a card, sequences of {context:,} tokens")
    console.print(table)
    lacking = [fit.plan.deployment.hardware.name for fit in fits if not fit.plan.fits]
    if lacking:
        console.print(f"  not within one node: {', '.join(lacking)}")
