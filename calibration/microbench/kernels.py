"""The kernels that are timed on one accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from calibration.kernels.measured import KernelRow
from calibration.microbench.shapes import Shapes
from calibration.microbench.timing import Timer, copies_beyond_cache

__all__ = ["rows_of"]

_MOST_BYTES = 0.4
"""Share of the memory beyond which a shape is left out."""


def rows_of(device: str, shapes: Shapes, gpu: str, source: str) -> Iterator[KernelRow]:
    """Yield the times of products, attention, copies and routed experts on *device*; what PyTorch lacks is left out."""
    timer = Timer(device)
    for measured in (_products, _decode, _prefill, _copies, _experts):
        yield from (row._replace(gpu=gpu, source=source) for row in measured(timer, shapes))


def _fits(timer: Timer, wanted_bytes: float) -> bool:
    if not timer.device.startswith("cuda"):
        return True
    return bool(wanted_bytes < _MOST_BYTES * torch.cuda.get_device_properties(timer.device).total_memory)


def _random(timer: Timer, *size: int) -> Any:
    return torch.randn(*size, device=timer.device, dtype=torch.bfloat16)


def _products(timer: Timer, shapes: Shapes) -> Iterator[KernelRow]:
    for n, k in shapes.products:
        weights = [_random(timer, n, k) for _ in range(copies_beyond_cache(2.0 * n * k))]
        in_eight_bits = [weight.to(torch.float8_e4m3fn) for weight in weights] if _has_fp8(timer) else []
        for m in shapes.rows:
            inputs = _random(timer, m, k)
            seconds = timer.seconds(partial(_product, inputs, weights))
            yield KernelRow("", "gemm", "bf16", m=m, n=n, k=k, seconds=seconds)
            if in_eight_bits and m % 16 == 0:
                seconds = timer.seconds(partial(_product_in_eight_bits, inputs.to(torch.float8_e4m3fn), in_eight_bits))
                yield KernelRow("", "gemm", "fp8", m=m, n=n, k=k, seconds=seconds)


def _product(inputs: Any, weights: list[Any], number: int) -> Any:
    return functional.linear(inputs, weights[number % len(weights)])


def _product_in_eight_bits(inputs: Any, weights: list[Any], number: int) -> Any:
    one = torch.ones((), device=inputs.device)
    weight = weights[number % len(weights)].t()
    return torch._scaled_mm(inputs, weight, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def _has_fp8(timer: Timer) -> bool:
    return timer.device.startswith("cuda") and torch.cuda.get_device_capability(timer.device) >= (8, 9)


def _decode(timer: Timer, shapes: Shapes) -> Iterator[KernelRow]:
    for heads, kv_heads, head_dim in shapes.heads:
        for batch, context in shapes.decode:
            kept_bytes = 4.0 * batch * context * kv_heads * head_dim
            copies = copies_beyond_cache(kept_bytes)
            if not _fits(timer, copies * kept_bytes):
                continue
            query = _random(timer, batch, heads, 1, head_dim)
            cache = [_random(timer, 2, batch, kv_heads, context, head_dim) for _ in range(copies)]
            seconds = timer.seconds(partial(_attention, query, cache, False))
            yield KernelRow(
                "", "decode", "bf16", batch=batch, context=context, heads=heads, kv_heads=kv_heads,
                head_dim=head_dim, seconds=seconds,
            )  # fmt: skip


def _prefill(timer: Timer, shapes: Shapes) -> Iterator[KernelRow]:
    for heads, kv_heads, head_dim in shapes.heads:
        for batch, prompt in shapes.prefill:
            query = _random(timer, batch, heads, prompt, head_dim)
            cache = [_random(timer, 2, batch, kv_heads, prompt, head_dim)]
            seconds = timer.seconds(partial(_attention, query, cache, True))
            yield KernelRow(
                "", "prefill", "bf16", batch=batch, context=prompt, heads=heads, kv_heads=kv_heads,
                head_dim=head_dim, seconds=seconds,
            )  # fmt: skip


def _attention(query: Any, cache: list[Any], causal: bool, number: int) -> Any:
    keys, values = cache[number % len(cache)]
    return functional.scaled_dot_product_attention(query, keys, values, is_causal=causal, enable_gqa=True)


def _copies(timer: Timer, shapes: Shapes) -> Iterator[KernelRow]:
    """Yield the times of adding two vectors in place, which reads twice and writes once what it is given."""
    for size in shapes.copies:
        copies = copies_beyond_cache(2.0 * size)
        sources = [_random(timer, size // 2) for _ in range(copies)]
        targets = [_random(timer, size // 2) for _ in range(copies)]
        seconds = timer.seconds(partial(_add, targets, sources))
        yield KernelRow("", "copy", "bf16", bytes=3 * size, seconds=seconds)


def _add(targets: list[Any], sources: list[Any], number: int) -> Any:
    return targets[number % len(targets)].add_(sources[number % len(sources)])


def _experts(timer: Timer, shapes: Shapes) -> Iterator[KernelRow]:
    """Yield the times of gate and up, activation, and down as grouped products, evenly loaded."""
    if not hasattr(torch, "_grouped_mm"):
        return
    for experts, top_k, hidden, inner in shapes.experts:
        up, down = _random(timer, experts, hidden, 2 * inner), _random(timer, experts, inner, hidden)
        for tokens in shapes.tokens:
            rows = tokens * top_k
            inputs = _random(timer, rows, hidden)
            ends = torch.tensor([rows * (i + 1) // experts for i in range(experts)], device=timer.device).int()

            try:
                seconds = timer.seconds(partial(_grouped, inputs, up, down, ends))
            except (RuntimeError, NotImplementedError):
                return  # not for this device, or not in this version
            yield KernelRow("", "experts", "bf16", m=tokens, n=inner, k=hidden, experts=experts, top_k=top_k,
                            seconds=seconds)  # fmt: skip


def _grouped(inputs: Any, up: Any, down: Any, ends: Any, number: int) -> Any:
    gate, value = torch._grouped_mm(inputs, up, offs=ends).chunk(2, dim=-1)
    return torch._grouped_mm(functional.silu(gate) * value, down, offs=ends)
