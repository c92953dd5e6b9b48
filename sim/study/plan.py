"""The five steps of a capacity plan: weights, KV cache, overhead, GPUs of a replica, validation under load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sim.batch import Batch
from sim.errors import InfeasibleError
from sim.experiment import Experiment, experiment_of
from sim.metrics.rows import RequestRows
from sim.profiles.quantization import Dtype, Quantization
from sim.simulate import Result, Setup, prepare, simulate
from sim.study.standing import require_standing

__all__ = ["Fit", "Plan", "in_flight", "plan_of"]

_HEADROOM = (1.3, 1.5)
_DEGREES = (1, 2, 4, 8)
_WORTH = 1.1
"""Larger replicas must need so many times fewer GPUs, or give so many times the tokens of each, to be worth it."""
_PRECISIONS: tuple[Dtype, ...] = ("bf16", "fp8", "int4")


@dataclass(frozen=True, slots=True)
class Fit:
    """A replica on *tp* accelerators.

    Attributes
    ----------
    kv_tokens
        Tokens that its KV cache holds.
    sequences
        Requests of the planned context that these are, of which it runs at most *max_num_seqs*.
    replicas
        Replicas that hold the peak with 30 % headroom.
    tok_s_per_gpu
        Output tokens a second of one accelerator with the planned requests spread over the replicas.
    link_share
        Share of a decode iteration that communication takes.
    why_not
        What does not fit; then the rest is 0.
    """

    tp: int
    kv_tokens: int = 0
    sequences: float = 0.0
    replicas: int = 0
    tok_s_per_gpu: float = 0.0
    link_share: float = 0.0
    why_not: str = ""

    @property
    def gpus(self) -> int:
        """Accelerators of all replicas."""
        return self.tp * self.replicas


@dataclass(frozen=True, slots=True)
class Plan:
    """What each step came to.

    Attributes
    ----------
    weights_bytes
        By precision, of the whole model.
    context_tokens, concurrency
        The 95th percentile of prompt and answer together, and the 99th of the requests in flight.
    kv_bytes_per_token, kv_bytes
        Of one token, and of the peak without headroom.
    overhead_bytes
        Beside weights and KV cache on one accelerator, by what it is for.
    fits
        By tensor parallelism; *chosen* is the one to take, None if none fits.
    validation
        The result of the chosen deployment with the planned requests always in flight, under its public keys.
    """

    experiment: Experiment
    precision: str
    weights_bytes: dict[str, float]
    context_tokens: int
    concurrency: int
    concurrency_from: str
    kv_bytes_per_token: float
    kv_bytes: float
    overhead_bytes: dict[str, float]
    fits: tuple[Fit, ...]
    chosen: Fit | None
    validation: dict[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        """Return it under its public keys."""
        return {
            "name": self.experiment.name,
            "model": self.experiment.model,
            "gpu": self.experiment.deployment.gpu,
            "precision": self.precision,
            "weights_bytes": self.weights_bytes,
            "context_tokens": self.context_tokens,
            "concurrency": self.concurrency,
            "concurrency_from": self.concurrency_from,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "kv_bytes": self.kv_bytes,
            "kv_bytes_with_headroom": [self.kv_bytes * factor for factor in _HEADROOM],
            "overhead_bytes": self.overhead_bytes,
            "fits": [asdict(fit) for fit in self.fits],
            "chosen": None if self.chosen is None else asdict(self.chosen),
            "validation": self.validation,
        }


def plan_of(experiment: Experiment, concurrency: int | None = None, context_tokens: int | None = None) -> Plan:
    """Walk the five steps for *experiment*.

    Parameters
    ----------
    concurrency, context_tokens
        Requests in flight at the peak, and tokens of each; missing: what the experiment's own run has.

    Raises
    ------
    ConfigError
        For an experiment with pools or replicas that come and go, or without lengths apart from its arrivals, or for
        a context that no engine accepts.
    """
    if experiment.pools:
        raise experiment.error("pools", "a plan walks one deployment: leave pools out")
    require_standing(experiment, "a plan is")
    if experiment.workload.lengths is None:
        raise experiment.error("workload.lengths", "a plan needs lengths apart from the arrivals")
    setups = {tp: _try(experiment, tp) for tp in _DEGREES}
    ready = [(tp, setup) for tp, setup in setups.items() if isinstance(setup, Setup)]
    if not ready:
        raise next(problem for problem in reversed(setups.values()) if isinstance(problem, InfeasibleError))
    peak, source = (concurrency, "as given") if concurrency else _peak(experiment, ready[-1][0])
    setup = ready[0][1]
    context = context_tokens or _context(experiment, setup)
    if context > (longest := setup.engine.max_model_len):
        raise experiment.error("engine.max_model_len", f"{longest:,}, less than the context of {context:,} tokens")
    per_token = setup.model.kv_bytes_per_token(experiment.deployment.quantization.kv_cache)
    fits = tuple(_fit(tp, found, context, peak) for tp, found in setups.items())
    chosen = _chosen(fits)
    return Plan(
        experiment=experiment,
        precision=setup.model.dtype_of("mlp", experiment.deployment.quantization),
        weights_bytes={each: setup.model.weight_bytes(Quantization(weights=each)) for each in _PRECISIONS},
        context_tokens=context,
        concurrency=peak,
        concurrency_from=source,
        kv_bytes_per_token=per_token,
        kv_bytes=per_token * context * peak,
        overhead_bytes=_overhead(setup),
        fits=fits,
        chosen=chosen,
        validation=None if chosen is None else _validate(experiment, chosen, peak),
    )


def _with_tp(experiment: Experiment, tp: int, **workload: Any) -> Experiment:
    document = experiment.document.replace("deployment.parallelism", {"tp": tp}, "the plan")
    for path, value in workload.items():
        document = document.replace(path.replace("__", "."), value, "the plan")
    return experiment_of(document)


def _try(experiment: Experiment, tp: int) -> Setup | InfeasibleError:
    try:
        return prepare(_with_tp(experiment, tp))
    except InfeasibleError as problem:
        return problem


def _peak(experiment: Experiment, fitting: int) -> tuple[int, str]:
    """Return the 99th percentile of the requests in flight as written, or where that does not fit with TP *fitting*."""
    try:
        result = simulate(experiment)
    except InfeasibleError:
        experiment = _with_tp(experiment, fitting)
        result = simulate(experiment)
    tp, replicas = experiment.deployment.parallelism.tp, experiment.deployment.replicas
    return max(1, math.ceil(in_flight(result.requests, 0.99))), f"p99 in flight of the run on {replicas} x TP{tp}"


def in_flight(requests: RequestRows, share: float) -> float:
    """Return how many requests are in flight, exceeded for 1 - *share* of the time from the first arrival on."""
    ended = ~np.isnan(requests.last_token_s)
    times = np.concatenate([requests.arrival_s[ended], requests.last_token_s[ended]])
    steps = np.repeat([1, -1], ended.sum())
    order = np.argsort(times, kind="stable")
    lasting = np.diff(times[order], append=times.max(initial=0.0))
    counts = np.cumsum(steps[order])
    by_count = np.argsort(counts, kind="stable")
    lasted = np.cumsum(lasting[by_count])
    place = np.searchsorted(lasted, share * lasted[-1]) if len(lasted) else 0
    return float(counts[by_count][min(place, len(lasted) - 1)]) if len(lasted) else 0.0


def _context(experiment: Experiment, setup: Setup) -> int:
    """Return the 95th percentile of prompt and answer together, as far as the engine takes them."""
    from sim.workload import generate

    requests = generate(experiment.workload, experiment.seed, experiment.folder).requests
    longest = np.array([request.total_tokens for request in requests])
    return min(math.ceil(float(np.percentile(longest, 95))), setup.engine.max_model_len)


def _overhead(setup: Setup) -> dict[str, float]:
    memory = setup.memory
    if memory is None:
        return {}
    usable = memory.ranks[0].visible_bytes - memory.ranks[0].usable_bytes
    return {
        "left to others (gpu_memory_utilization)": usable,
        "activations": memory.activation_bytes,
        "outside the framework": memory.non_torch_bytes,
        "CUDA graphs": memory.cuda_graph_bytes,
    }


def _fit(tp: int, setup: Setup | InfeasibleError, context: int, peak: int) -> Fit:
    if not isinstance(setup, Setup):
        return Fit(tp, why_not=str(setup).split(". Nearest")[0])
    tokens = setup.engine.room_tokens
    limit = getattr(setup.engine.scheduler, "max_num_seqs", None) or math.inf
    sequences = tokens / context if setup.memory is None else setup.memory.concurrency(context)
    replicas = math.ceil(peak * _HEADROOM[0] / min(sequences, limit))
    batch = math.ceil(peak / replicas)
    decode = Batch(decodes=batch, decode_context_tokens=batch * context, sampled=batch)
    decode.decode_window_tokens = tuple(batch * min(context, window) for window in setup.engine.cost.windows)
    step_s = setup.engine.cost.pace(decode).first_s
    links = setup.engine.cost.breakdown(decode).get("all_reduce", 0.0)
    return Fit(tp, tokens, sequences, replicas, batch / step_s / tp, links / step_s)


def _chosen(fits: Sequence[Fit]) -> Fit | None:
    """Return the smallest replica after which none needs clearly fewer GPUs or gives clearly more of each."""
    best: Fit | None = None
    for fit in fits:
        if not fit.why_not and (best is None or _better(fit, best)):
            best = fit
    return best


def _better(larger: Fit, smaller: Fit) -> bool:
    """Return whether a *larger* replica is worth what its GPUs lose by talking to each other."""
    fewer = smaller.gpus >= _WORTH * larger.gpus
    return fewer or (smaller.gpus >= larger.gpus and larger.tok_s_per_gpu >= _WORTH * smaller.tok_s_per_gpu)


def _validate(experiment: Experiment, fit: Fit, peak: int) -> dict[str, Any]:
    requests = max(experiment.workload.num_requests or 0, 10 * peak)
    loaded = _with_tp(
        experiment,
        fit.tp,
        deployment__replicas=fit.replicas,
        workload__arrivals={"kind": "closed_loop", "concurrency": peak},
        workload__num_requests=requests,
    )
    result: Result = simulate(loaded)
    return result.summary.as_dict()
