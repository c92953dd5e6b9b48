"""Time of the engine's own code around the GPU, and what of it shows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.batch import Batch
from sim.cost.masks import Masks
from sim.cost.pace import Pace

__all__ = ["Delay", "Host", "Launches", "pace_beside", "pace_once"]


@dataclass(frozen=True, slots=True)
class Launches:
    """Kernels of batches beyond the captured graphs, which the host launches while the GPU works.

    Attributes
    ----------
    largest
        Largest decode whose kernels are captured [sequences].
    launch_s
        Time in which the host launches those of an iteration [s].
    eager
        No iteration's kernels are captured, those with prompts neither.
    """

    largest: int
    launch_s: float
    eager: bool = False

    def seconds(self, batch: Batch) -> float:
        """Return the time of launching the kernels of *batch* [s]; those of prompts count where nothing is captured."""
        beyond = not batch.chunks and batch.decodes + batch.padding > self.largest
        return self.launch_s if beyond or self.eager else 0.0


@dataclass(frozen=True, slots=True)
class Host:
    """Scheduling, input preparation and output handling of one iteration.

    Attributes
    ----------
    per_iteration_s, per_sequence_s, per_prefill_s
        For every iteration, for each sequence in it, and for an iteration that prefills [s].
    overlapped
        The engine prepares the next iteration while the GPU works: the longer of the two counts, not their sum.
    masks
        Time of the masks of structured output; None: no sequence has a grammar.
    launches
        Kernels that are launched one by one; None: they are captured, or their launches are in the other times.
    """

    per_iteration_s: float = 0.0
    per_sequence_s: float = 0.0
    per_prefill_s: float = 0.0
    overlapped: bool = False
    masks: Masks | None = None
    launches: Launches | None = None

    def seconds(self, batch: Batch) -> tuple[float, float]:
        """Return the host time of one iteration [s]: what goes on beside the GPU, and what the GPU waits for."""
        prefills = len(batch.chunks)
        sequences = prefills + batch.decodes + batch.padding
        host_s = self.per_iteration_s + self.per_sequence_s * sequences + (self.per_prefill_s if prefills else 0.0)
        hidden_s, shown_s = (host_s, 0.0) if self.overlapped else (0.0, host_s)
        if self.launches is not None:
            hidden_s += self.launches.seconds(batch)
        if self.masks is None:
            return hidden_s, shown_s
        masks_s = self.masks.seconds(batch.masks)
        return (hidden_s + masks_s, shown_s) if self.masks.overlapped else (hidden_s, shown_s + masks_s)

    def exposed_s(self, batch: Batch, gpu_s: float) -> float:
        """Return what host time adds to the iteration [s]."""
        hidden_s, shown_s = self.seconds(batch)
        return max(0.0, hidden_s - gpu_s) + shown_s

    def durations_s(self, batch: Batch, gpu_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the times of iterations that are as *batch* to the host, and differ in their GPU time [s]."""
        hidden_s, shown_s = self.seconds(batch)
        return np.asarray(np.maximum(gpu_s, hidden_s) + shown_s)

    def pace(self, batch: Batch, gpu_s: float, growth_s: float, iterations: float = math.inf) -> Pace:
        """Return the pace of *iterations* whose GPU time starts at *gpu_s* and grows by *growth_s*.

        Where the host is slower, the pace is flat and ends with the last iteration before the GPU overtakes it.
        """
        hidden_s, shown_s = self.seconds(batch)
        if batch.chunks:
            return pace_once(gpu_s, hidden_s, shown_s)
        return pace_beside(gpu_s, growth_s, hidden_s, shown_s, iterations)


def pace_once(gpu_s: float, hidden_s: float, shown_s: float) -> Pace:
    """Return the pace of one iteration, as `pace_beside`."""
    return Pace((gpu_s if gpu_s >= hidden_s else hidden_s) + shown_s, 0.0, 1)


def pace_beside(
    gpu_s: float, growth_s: float, hidden_s: float, shown_s: float, iterations: float = math.inf
) -> Pace:
    """Return the pace of iterations beside whose GPU time *hidden_s* passes, and before or after it *shown_s* [s].

    The GPU time grows by *growth_s* for that many *iterations*.
    """
    if gpu_s >= hidden_s:
        return Pace(gpu_s + shown_s, growth_s, iterations)
    overtaking = math.floor((hidden_s - gpu_s) / growth_s) + 1 if growth_s else math.inf
    return Pace(hidden_s + shown_s, 0.0, min(overtaking, iterations))


@dataclass(frozen=True, slots=True)
class Delay:
    """What passes before the engine sees a request: HTTP, and tokenisation of the prompt."""

    fixed_s: float = 0.0
    per_prompt_token_s: float = 0.0
