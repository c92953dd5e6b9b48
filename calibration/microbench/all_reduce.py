"""All-reduces over the accelerators of this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import distributed, multiprocessing

from calibration.kernels.measured import KernelRow
from calibration.microbench.timing import Timer

__all__ = ["all_reduces"]


def all_reduces(device: str, ranks: int, messages: Sequence[int], gpu: str, source: str) -> Iterator[KernelRow]:
    """Yield the times of NCCL (Gloo on processors) for each size of message, over *ranks* processes."""
    with tempfile.TemporaryDirectory() as folder:
        shared = multiprocessing.get_context("spawn").SimpleQueue()
        arguments = (device, ranks, tuple(messages), f"file://{Path(folder) / 'meeting'}", shared)
        multiprocessing.spawn(_rank, arguments, nprocs=ranks)
        seconds: list[float] = shared.get()
    for size, each in zip(messages, seconds, strict=True):
        yield KernelRow(gpu, "all_reduce", "bf16", ranks=ranks, bytes=size, seconds=each, source=source)


def _rank(rank: int, device: str, ranks: int, messages: tuple[int, ...], meeting: str, shared: Any) -> None:
    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.set_device(rank)
    distributed.init_process_group("nccl" if on_gpu else "gloo", init_method=meeting, rank=rank, world_size=ranks)
    seconds = [_seconds(f"cuda:{rank}" if on_gpu else "cpu", size) for size in messages]
    distributed.barrier()
    if rank == 0:
        shared.put(seconds)
    distributed.destroy_process_group()


def _seconds(device: str, size: int) -> float:
    vector = torch.zeros(size // 2, device=device, dtype=torch.bfloat16)
    if device.startswith("cuda"):
        return Timer(device).seconds(lambda _: distributed.all_reduce(vector))
    return Timer(device).steady(lambda _: distributed.all_reduce(vector))
