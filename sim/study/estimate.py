"""About how many requests a replica serves within the SLO: where a search begins. No answer rests on it."""

from __future__ import annotations

import math

from sim.batch import Batch, Chunk
from sim.simulate import Setup
from sim.slo import SLO
from sim.study.bisection import last_true
from sim.study.load import Lengths, Load

__all__ = ["estimated_replicas"]

_MOST_SEQUENCES = 4096


def estimated_replicas(setup: Setup, lengths: Lengths, slo: SLO, load: Load) -> int:
    """Return about how many replicas the peak of *load* takes.

    A replica in balance: with n sequences running, each iteration decodes n tokens and prefills n x input / output. The
    most n whose iteration is within the bound on the time per token.
    """
    token_s = _token_bound_s(slo, lengths)
    most = _most_sequences(setup, lengths)
    running = last_true(lambda count: _iteration_s(setup, lengths, count) <= token_s, 32, 1, most) or 1
    per_s = running / lengths.mean_output / _iteration_s(setup, lengths, running) * setup.engine.attention_ranks
    answer_s = running * setup.engine.attention_ranks / per_s
    return max(1, math.ceil(load.per_second(load.peak, answer_s) / per_s)) if load.unit != "speed" else 1


def _token_bound_s(slo: SLO, lengths: Lengths) -> float:
    bounds_s = {clause.latency: clause.bound_s for clause in slo.clauses}
    whole_s = bounds_s.get("e2el", math.inf) / lengths.mean_output
    return min(bounds_s.get("tpot", math.inf), bounds_s.get("itl", math.inf), whole_s)


def _most_sequences(setup: Setup, lengths: Lengths) -> int:
    scheduler, engine = setup.flags.scheduler, setup.engine
    tokens = lengths.mean_input + lengths.mean_output
    most = getattr(scheduler, "max_num_seqs", None) or getattr(scheduler, "batch_size", None) or _MOST_SEQUENCES
    return max(1, min(int(most), int(engine.room_tokens / tokens)))


def _iteration_s(setup: Setup, lengths: Lengths, running: int) -> float:
    cost = setup.engine.cost
    context = lengths.mean_input + lengths.mean_output / 2
    prompt = 0 if lengths.shared else round(running * lengths.mean_input / lengths.mean_output)
    windows = tuple(round(running * min(context, window)) for window in cost.windows)
    chunks = (Chunk(prompt, 0),) if prompt else ()
    return cost.pace(Batch(chunks, running, round(running * context), windows, sampled=running)).first_s
