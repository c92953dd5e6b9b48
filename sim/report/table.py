"""The result for people: what was simulated, latencies, throughput, and what to make of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from sim.metrics.acceptance import Acceptance
from sim.metrics.bill import Bill
from sim.metrics.classes import GroupSummary
from sim.metrics.fleet import FleetSummary
from sim.metrics.latency import PERCENTILES
from sim.metrics.pools import PoolSummary
from sim.metrics.ratio import ratio
from sim.metrics.served import Served
from sim.metrics.summary import Summary
from sim.metrics.time_use import TimeUse
from sim.slo import Judgement, ShareJudgement
from sim.units import format_seconds

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["WIDTH", "number", "objective", "print_table", "share"]

_TRANSFER = {"mean": "mean", "p50": "median", "p99": "p99"}
_LATENCIES = {"ttft": "TTFT", "tpot": "TPOT", "itl": "ITL", "e2el": "end to end"}
_MOST_OPERATIONS = 4
WIDTH = 110
"""Columns of text, at least, but on a terminal that has fewer."""
_NARROWEST = 80


def print_table(summary: Summary, about: Sequence[str], file: IO[str] | None = None) -> None:
    """Print *summary* under the lines *about* what was simulated, to *file* or to standard output.

    A file gets at least 110 columns, a terminal no more than it has, if these are 80. Where that is too narrow for the
    SLO beside the latencies, it stands below them.
    """
    from rich.console import Console
    from rich.padding import Padding

    console = Console(file=file, highlight=False, markup=False, emoji=False)
    console.width = max(console.width, _NARROWEST if console.is_terminal else WIDTH)
    narrow = console.width < WIDTH
    for line in about:
        console.print(line, style="bold" if line is about[0] else None)
    console.print(_latencies(summary, slo=bool(summary.objectives) and not narrow))
    bounds = _bounds(summary) if narrow else ()
    console.print(Padding(_facts([*bounds, *_statements(summary)]), (0, 2)))
    for warning in summary.warnings:
        if warning == summary.steadiness.statement:
            continue  # the line "State" has said it
        console.print(f"  ! {warning}", style="yellow")


def _latencies(summary: Summary, *, slo: bool) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("latency", no_wrap=True)
    for heading in ("unit", "mean", "90 % interval", "p50", "p90", "p95", "p99"):
        table.add_column(heading, justify="left" if heading == "unit" else "right", no_wrap=True)
    if slo:
        table.add_column("SLO", no_wrap=True)
        table.add_column("within", justify="right", no_wrap=True)
    for name in _LATENCIES:
        table.add_row(*_cells(summary, name, slo))
    return table


def _cells(summary: Summary, name: str, slo: bool) -> Iterator[str]:
    times = summary.latency[name]
    unit, scale = ("s", 1.0) if times.mean_s >= 10 else ("ms", 1e3)
    yield _LATENCIES[name]
    yield unit
    yield number(times.mean_s * scale)
    yield _interval(summary, name, scale / 1e3)
    yield from (number(times.percentile(percent) * scale) for percent in PERCENTILES.values())
    if slo:
        judged = [judgement for judgement in summary.objectives.values() if judgement.clause.latency == name]
        yield "\n".join(map(objective, judged))
        yield "\n".join(_percent(judgement.share_within) for judgement in judged)


def _interval(summary: Summary, name: str, per_ms: float) -> str:
    interval = summary.certainty.intervals.get(f"mean_{name}_ms")
    return "-" if interval is None else " - ".join(number(bound * per_ms) for bound in interval)


def objective(judged: Judgement, *, named: bool = False) -> str:
    """Say whether a clause of the SLO is met; *named*: with its latency."""
    clause = judged.clause
    name = f"{_LATENCIES[clause.latency]} " if named else ""
    return f"{name}p{clause.percent:g} <= {format_seconds(clause.bound_s)}: {'met' if judged.met else 'MISSED'}"


def share(judged: ShareJudgement) -> str:
    """Say whether an objective on a share of the requests is met."""
    return f"{judged.value:.2%} of all requests; at least {judged.bound:.6g}: {'met' if judged.met else 'MISSED'}"


def _bounds(summary: Summary) -> Iterator[tuple[str, str]]:
    for judged in summary.objectives.values():
        yield "SLO", f"{objective(judged, named=True)}, {_percent(judged.share_within)} within"


def _facts(statements: Iterable[tuple[str, str]]) -> Table:
    from rich.table import Table

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    for name, text in statements:
        facts.add_row(name, text)
    return facts


def _statements(summary: Summary) -> Iterator[tuple[str, str]]:
    result = summary.as_dict()
    yield "Requests", _requests(summary)
    yield "Throughput", _throughput(result)
    yield "Peak", _peak(result)
    if summary.served.goodput is not None:
        yield "Goodput", _goodput(summary.served, summary.served.goodput)
    for name, judged in summary.shares.items():
        yield name.capitalize(), share(judged)
    yield "KV cache", _kv_cache(summary)
    if summary.fleet is not None:
        yield "Fleet", _fleet(summary.fleet)
        if summary.fleet.replica_losses:
            yield "Losses", _losses(summary.fleet, slo=bool(summary.objectives))
    yield from _drafts(summary.acceptance)
    if (usd := summary.bill.usd_per_mtok_output) is not None:
        yield "Cost", _cost(summary, usd)
    if (joules := summary.bill.joules_per_output_tok) is not None:
        yield "Energy", _energy(summary.bill, joules)
    if summary.transfers is not None:
        yield "KV moved", _moved(result)
    yield "Limited by", summary.binding.sentence
    if summary.time_use.by_operation:
        yield "Iterations", _time_use(summary.time_use)
    if len(summary.pools) > 1:
        yield from ((pool.name, _pool(pool)) for pool in summary.pools)
    yield from ((group.name, _group(group)) for group in (*summary.groups.classes, *summary.groups.tenants))
    if len(summary.groups.tenants) > 1:
        yield "Fairness", _fairness(summary)
    yield "State", summary.steadiness.statement
    yield "Simulated", _effort(summary)


def _requests(summary: Summary) -> str:
    served = summary.served
    counts = f"{served.completed:,} completed, {served.failed:,} failed, {served.rejected:,} rejected"
    return f"{counts} in {format_seconds(served.duration_s)}; {number(summary.running_mean)} running on average"


def _throughput(result: dict[str, Any]) -> str:
    return (
        f"{number(result['request_throughput'])} requests/s; "
        f"{number(result['output_throughput'])} output tok/s, "
        f"{number(result['output_tok_s_per_gpu'])} per GPU; "
        f"{number(result['total_token_throughput'])} tok/s with input"
    )


def _peak(result: dict[str, Any]) -> str:
    tokens = number(result["max_output_tokens_per_s"])
    return f"{tokens} output tok/s; {result['max_concurrent_requests']:,} requests at once"


def _goodput(served: Served, goodput: float) -> str:
    share = ratio(goodput * served.duration_s, served.completed)
    return f"{number(goodput)} requests/s within every bound of the SLO, {_percent(share)} of the completed"


def _drafts(acceptance: Acceptance) -> Iterator[tuple[str, str]]:
    if acceptance.length is not None and acceptance.rate is not None:
        accepted = f"{_percent(acceptance.rate / 100)} of the drafts accepted"
        yield "Drafts", f"{number(acceptance.length)} tokens a verification; {accepted}"


def _kv_cache(summary: Summary) -> str:
    kv = summary.kv
    use = f"{_percent(kv.mean)} used on average, {_percent(kv.peak)} at most"
    waste = "" if math.isnan(kv.waste) else f", {_percent(kv.waste)} of it empty"
    return f"{use}{waste}; prefix hits {_percent(kv.prefix_hit_rate)}; {summary.preemptions:,} preemptions"


def _fleet(fleet: FleetSummary) -> str:
    ready = f"{number(fleet.ready_replicas_mean)} replicas ready on average, {fleet.ready_replicas_min} at least"
    changes = f"{fleet.scale_events:,} starts and drains"
    return f"{number(fleet.gpu_hours)} GPU-hours; {ready}; {_percent(fleet.availability)} available; {changes}"


def _losses(fleet: FleetSummary, *, slo: bool) -> str:
    lost = f"{fleet.replica_losses:,} replicas lost, {fleet.retries:,} retries, {fleet.lost_tokens:,} tokens lost"
    answered = "answered within the SLO" if slo else "answered"
    share = _percent(fleet.degraded_good_share)
    return f"{lost}; {share} {answered} of those who came in the {format_seconds(fleet.degraded_s)} with fewer replicas"


def _moved(result: dict[str, Any]) -> str:
    times = ", ".join(f"{word} {number(result[f'{key}_kv_transfer_ms'])}" for word, key in _TRANSFER.items())
    size = f"{result['kv_transfers']:,} times, {number(result['kv_transfer_gb'])} GB"
    wait = number(result["mean_kv_transfer_wait_ms"])
    busy = _percent(result["kv_link_utilization"])
    return f"{size}; ready after {times} ms, of which {wait} for blocks or the link; links {busy} busy"


def _time_use(use: TimeUse) -> str:
    """Name the operations that take the most time of an average iteration."""
    parts = sorted(use.by_operation.items(), key=lambda part: -part[1])
    most = ", ".join(f"{name} {_percent(share)}" for name, share in parts[:_MOST_OPERATIONS])
    uneven = "" if use.imbalance is None else f"; {_percent(use.imbalance)} is lost to uneven experts"
    return f"{most}{uneven}"


def _pool(pool: PoolSummary) -> str:
    size = f"{pool.replicas} x {pool.num_gpus / pool.replicas:.3g} GPUs busy {_percent(pool.busy_share)}"
    load = f"{pool.completed:,} completed, {number(pool.running_mean)} running on average"
    return f"{size}; {load}; KV cache {_percent(pool.kv_utilization_peak)} at most; limited by {pool.binding.sentence}"


def _cost(summary: Summary, usd_per_mtok: float) -> str:
    priced = [(pool.name, pool.price) for pool in summary.pools if pool.price is not None]
    if summary.bill.price is not None or len(priced) == 1:
        at = f"at {priced[0][1].statement}"
    else:
        at = "; ".join(f"{name} at {price.statement}" for name, price in priced)
    return f"${number(usd_per_mtok)} per million output tokens {at}"


def _energy(bill: Bill, joules: float) -> str:
    text = f"{number(joules)} J per output token"
    if bill.gpu_power_w is None or bill.facility_power_w is None:
        return text
    facility = f"{number(bill.facility_power_w / 1e3)} kW with servers and cooling"
    return f"{text}; {number(bill.gpu_power_w)} W a GPU on average, {facility}"


def _group(group: GroupSummary) -> str:
    lost = f", {group.rejected:,} rejected" * (group.rejected > 0) + f", {group.failed:,} failed" * (group.failed > 0)
    first, last = (group.latency[name] for name in ("ttft", "e2el"))
    times = f"TTFT {number(1e3 * first.mean_s)} ms, p95 {number(1e3 * first.percentile(95))} ms"
    judged = "".join(f"; {objective(one, named=True)}" for one in group.objectives.values())
    return f"{group.completed:,} completed{lost}; {times}; end to end {format_seconds(last.mean_s)}{judged}"


def _fairness(summary: Summary) -> str:
    fairness = summary.groups.fairness
    served, speed = (number(fairness[key]) for key in ("jain_served_share", "jain_speed"))
    return f"Jain's index over tenants: {served} of what was served, {speed} of the speed of answers"


def _effort(summary: Summary) -> str:
    time = f"{format_seconds(summary.simulated_s)} in {format_seconds(summary.wall_s)}"
    stepping = summary.stepping
    share = stepping.in_strides / max(stepping.iterations, 1)
    why = f": {stepping.why_single}" if stepping.why_single else ""
    return f"{time}, {stepping.iterations:,} engine iterations, {_percent(share)} in strides{why}"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{share:.1%}"


def number(value: float) -> str:
    """Print three digits, or all before the point from a hundred on."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:#.3g}"
