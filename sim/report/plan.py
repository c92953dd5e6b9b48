"""What ``sim plan`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sim.report.json import to_json
from sim.report.table import number
from sim.units import GIB, format_bytes

__all__ = ["show"]


def show(plan: Mapping[str, Any], form: str) -> None:
    """Print *plan*, as `sim.study.plan.Plan` has it under public keys, as ``table`` or ``json``."""
    if form == "json":
        print(to_json(plan))
        return
    print(f"{plan['name']}: {plan['model']} on {plan['gpu']}")
    for place, (title, lines) in enumerate(_steps(plan), start=1):
        print(f"\n{place}. {title}")
        for line in lines:
            print(f"   {line}")


def _steps(plan: Mapping[str, Any]) -> Iterator[tuple[str, Iterator[str]]]:
    yield "Weights at a precision", _weights(plan)
    yield "KV cache for the peak", _kv_cache(plan)
    yield "Overhead of the framework", _overhead(plan)
    yield "Does it fit, and is tensor parallelism worth its overhead?", _fits(plan)
    yield "Validation under load", _validation(plan)


def _weights(plan: Mapping[str, Any]) -> Iterator[str]:
    sizes = ", ".join(f"{name} {format_bytes(size)}" for name, size in plan["weights_bytes"].items())
    yield f"{sizes}; planned with {plan['precision']}"


def _kv_cache(plan: Mapping[str, Any]) -> Iterator[str]:
    yield f"context {plan['context_tokens']:,} tokens x {plan['concurrency']:,} at once ({plan['concurrency_from']})"
    low, high = plan["kv_bytes_with_headroom"]
    each = f"{plan['kv_bytes_per_token'] / 1024:,.0f} KiB a token"
    room = f"{format_bytes(low)} with 30 % headroom, {format_bytes(high)} with 50 %"
    yield f"{each}: {format_bytes(plan['kv_bytes'])} at the peak, {room}"


def _overhead(plan: Mapping[str, Any]) -> Iterator[str]:
    for name, size in plan["overhead_bytes"].items():
        yield f"{name}: {size / GIB:.2f} GiB of each accelerator"
    if not plan["overhead_bytes"]:
        yield "not planned: num_gpu_blocks_override gives the KV cache"


def _fits(plan: Mapping[str, Any]) -> Iterator[str]:
    for fit in plan["fits"]:
        if fit["why_not"]:
            yield f"TP{fit['tp']}: does not fit: {fit['why_not']}"
            continue
        held = f"KV cache {fit['kv_tokens']:,} tokens, {number(fit['sequences'])} such requests"
        need = f"{fit['replicas']} replica{'s' if fit['replicas'] > 1 else ''}, {fit['replicas'] * fit['tp']} GPUs"
        speed = f"{number(fit['tok_s_per_gpu'])} tok/s/GPU, {fit['link_share']:.0%} of it communication"
        yield f"TP{fit['tp']}: {held}; {need}; {speed}"
    if (chosen := plan["chosen"]) is not None:
        yield f"-> {chosen['replicas']} x TP{chosen['tp']}"


def _validation(plan: Mapping[str, Any]) -> Iterator[str]:
    found = plan["validation"]
    if found is None:
        yield "nothing to validate"
        return
    yield (
        f"{plan['concurrency']:,} requests always in flight: TTFT p95 {number(found['p95_ttft_ms'])} ms, TPOT p95"
        f" {number(found['p95_tpot_ms'])} ms, {number(found['output_throughput'])} tok/s,"
        f" KV cache {found['kv_utilization_peak']:.0%} full at most, {found['preemptions']} preemptions"
    )
    for name, judged in found["slo"].items():
        verdict = "met" if judged["met"] else "MISSED"
        yield f"{name} <= {number(judged['bound_ms'])} ms: {verdict} ({number(judged['value_ms'])} ms)"
    if found["cost_usd_per_mtok_output"] is not None:
        yield f"${number(found['cost_usd_per_mtok_output'])} per million output tokens at this load"
