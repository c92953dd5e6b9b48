"""What no schedule can beat: bounds from the cost of an iteration alone, without simulation.

They drop deployments before any run. Each is a true bound of what the simulation itself would find, so that a
deployment it drops would have missed the SLO, or needed more replicas, in simulation too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.batch import Batch, Chunk
from sim.simulate import Setup
from sim.slo import Clause
from sim.study.load import Lengths

__all__ = ["Bounds"]

_UNLIMITED_TOKENS = 65_536
_SLACK = 0.9
"""On the work of a request: its least cost per token is looked for at a few sizes of iterations only."""
_DRAWS = 5.0
"""Percents by which the percentile of other draws of the lengths may be lower."""


@dataclass(frozen=True)
class Bounds:
    """Bounds for one replica that runs *setup*, under requests of these *lengths*."""

    setup: Setup
    lengths: Lengths

    def least_s(self, clause: Clause) -> float:
        """Return what the percentile of a *clause* cannot be below, however few requests there are [s].

        Of every request: its prompt alone in one iteration, and each later token alone in one. Prompts that share a
        beginning may find all but their last token in the cache.
        """
        prompts = np.ones(1) if self.lengths.shared else self.lengths.input_tokens
        match clause.latency:
            case "ttft":
                return self._first_token_s(_quantile(prompts, clause.percent))
            case "e2el":
                answer = _quantile(self.lengths.output_tokens, clause.percent)
                return self._first_token_s(float(prompts.min())) + (answer - 1) * self._token_s(prompts.min())
            case _:
                return self._token_s(float(prompts.min())) if self.lengths.output_tokens.max() > 1 else 0.0

    @cached_property
    def work_s(self) -> float:
        """Time of a replica that an average request takes at least, in iterations as full as may be [s].

        The least time per token of full iterations, and the reading of the growing context by each later token.
        """
        answers = self.lengths.output_tokens
        prompts = np.ones_like(answers) if self.lengths.shared else self.lengths.input_tokens
        tokens = float((prompts + answers - 1).mean())
        read = float(((answers - 1) * (prompts + answers / 2)).mean())
        work_s = tokens * self._least_token_s + read * self._context_token_s
        return _SLACK * work_s / self.setup.engine.attention_ranks

    def least_replicas(self, requests_per_s: float) -> int:
        """Return how many replicas that many requests/s take at least."""
        return max(1, math.ceil(requests_per_s * self.work_s))

    def _first_token_s(self, input_tokens: float) -> float:
        chunk = Chunk(max(1, min(int(input_tokens), self._most_tokens)), 0)
        delay_s: float = self.setup.engine.cost.admission_delay_s(int(input_tokens))
        return delay_s + self._pace_s(Batch(chunks=(chunk,)))

    def _token_s(self, input_tokens: float) -> float:
        return self._pace_s(self._decodes(1, int(input_tokens) + 1))

    @property
    def _most_tokens(self) -> int:
        limit = getattr(self.setup.flags.scheduler, "max_num_batched_tokens", None)
        return int(limit or _UNLIMITED_TOKENS)

    @cached_property
    def _least_token_s(self) -> float:
        sizes: set[int] = {self._most_tokens, *(2**power for power in range(17) if 2**power < self._most_tokens)}
        return min(self._pace_s(batch) / size for size in sizes for batch in self._shapes(size))

    def _shapes(self, tokens: int) -> tuple[Batch, Batch]:
        return self._decodes(tokens, 1), Batch(chunks=(Chunk(tokens, 0),))

    @property
    def _context_token_s(self) -> float:
        return self.setup.engine.cost.pace(self._decodes(1, 1)).growth_s

    def _pace_s(self, batch: Batch) -> float:
        return self.setup.engine.cost.pace(batch).first_s

    def _decodes(self, count: int, context: int) -> Batch:
        windows = tuple(count * min(context, window) for window in self.setup.engine.cost.windows)
        return Batch(decodes=count, decode_context_tokens=count * context, decode_window_tokens=windows)


def _quantile(tokens: NDArray[Any], percent: float) -> float:
    return float(np.percentile(tokens, max(percent - _DRAWS, 0.0), method="lower"))
