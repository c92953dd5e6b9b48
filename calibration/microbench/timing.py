"""How long a kernel runs, without what the host takes to launch it."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

__all__ = ["Timer", "copies_beyond_cache"]

_IN_GRAPH, _REPLAYS, _WARM_UPS = 20, 7, 3
_CPU_S = 0.02
_CACHE_BYTES = 256 * 2**20
"""More than any last-level cache: inputs are rotated over so much, since weights are not in the cache when served."""
_MOST_COPIES = 32

Run = Callable[[int], Any]
"""A kernel, given the number of the copy of its inputs that it takes."""


def copies_beyond_cache(input_bytes: float) -> int:
    """Return how many copies of the inputs are needed so that none is in the cache when its turn comes."""
    return max(1, min(_MOST_COPIES, round(_CACHE_BYTES / max(input_bytes, 1.0))))


class Timer:
    """Measures on one device: CUDA graphs on a GPU, plain loops on a processor."""

    def __init__(self, device: str) -> None:
        self.device = device

    def seconds(self, run: Run) -> float:
        """Return the median time of one call of *run* [s]."""
        for warm_up in range(_WARM_UPS):
            run(warm_up)
        return self._by_graph(run) if self.device.startswith("cuda") else self._by_loop(run)

    @staticmethod
    def steady(run: Run, times: int = _IN_GRAPH) -> float:
        """Return the median of so many calls [s]: for ranks, which must all make as many."""
        seconds = []
        for number in range(times):
            start_s = time.perf_counter()
            run(number)
            seconds.append(time.perf_counter() - start_s)
        return median(seconds)

    @staticmethod
    def _by_graph(run: Run) -> float:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            run(0)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for number in range(_IN_GRAPH):
                run(number)
        graph.replay()
        times_ms = []
        for _ in range(_REPLAYS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times_ms.append(begin.elapsed_time(end))
        return float(median(times_ms)) * 1e-3 / _IN_GRAPH

    @staticmethod
    def _by_loop(run: Run) -> float:
        began_s, times_s = time.perf_counter(), list[float]()
        while len(times_s) < _WARM_UPS or time.perf_counter() - began_s < _CPU_S:
            start_s = time.perf_counter()
            run(len(times_s))
            times_s.append(time.perf_counter() - start_s)
        return median(times_s)
