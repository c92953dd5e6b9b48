"""How wrong a run may be: by the regime of runs that were measured, and by what is special about this one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sim.batch import Blocked
from sim.errors import ProfileError
from sim.experiment import Experiment
from sim.metrics.model_error import ModelError, widest
from sim.metrics.pools import PoolContext
from sim.metrics.rows import RequestRows, StrideRows
from sim.profiles.calibrated_errors import ErrorRegime, ErrorTable, Load
from sim.profiles.folders import exists
from sim.profiles.library import load_calibrated_hardware, load_engine, load_error_table
from sim.simulate.pools import ReadyPool
from sim.simulate.setup import Setup

__all__ = ["TABLE", "capacity_warnings", "load_of", "model_error"]

TABLE = "serving"
"""Name of the table of errors that runs are judged by."""
_LIGHT, _BUSY = 0.2, 0.6
_NEAR = 0.85
"""Share of the KV cache from which an error of 15 % in its size would make requests wait, or stop waiting."""


def load_of(requests: RequestRows) -> Load:
    """Return how busy a run was: the share of the time to the first token that went by in the queue."""
    waited_s, first_s = np.nansum(requests.queue_s), np.nansum(requests.ttft_s)
    share = waited_s / first_s if first_s > 0 else 0.0
    return "light" if share < _LIGHT else "busy" if share < _BUSY else "saturated"


def model_error(
    pools: Sequence[ReadyPool], contexts: Sequence[PoolContext], requests: RequestRows, strides: StrideRows
) -> ModelError | None:
    """Return the errors to expect of the result, of several pools the largest; None where any of them has none.

    So it is where prompts and answers are on different replicas: the table was not made from such runs.
    """
    if any(pool.role != "both" for pool in pools):
        return None
    errors = []
    for pool, context in zip(pools, contexts, strict=True):
        own = requests.where(context.has(requests.replica)) if len(pools) > 1 else requests
        if own.completed.any() or len(pools) == 1:
            errors.append(_pool_error(pool.experiment, pool.setup, own, context.strides(strides)))
    known = [error for error in errors if error is not None]
    return widest(known) if known and len(known) == len(errors) else None


def _pool_error(experiment: Experiment, setup: Setup, requests: RequestRows, strides: StrideRows) -> ModelError | None:
    """Return the errors of one pool; None where the cost model is the user's own line, or drafts are verified."""
    if experiment.cost_model.kind != "roofline" or experiment.engine.speculative is not None:
        return None
    if not exists("calibrated/errors", TABLE, experiment.folder):
        return None
    table = load_error_table(TABLE, experiment.folder)
    engine = load_engine(experiment.engine.kind, experiment.folder).name
    load = load_of(requests)
    regime = table.of(engine, setup.hardware.name, load)
    if regime is None:
        return None
    wider = _kernel_error(experiment, regime)
    beyond = list(_beyond(regime, requests, strides))
    if beyond:
        wider *= table.beyond_factor
    factors = {name: float(factor**wider) for name, factor in regime.factors.items()}
    return ModelError(factors, _statement(table, regime, beyond, wider))


def _kernel_error(experiment: Experiment, regime: ErrorRegime) -> float:
    """Return how much wider errors are on an accelerator whose kernels were not measured, unless runs on it were."""
    if regime.gpus:
        return 1.0
    try:
        return load_calibrated_hardware(experiment.deployment.gpu, experiment.folder).error_factor
    except ProfileError:
        return 1.0


def _beyond(regime: ErrorRegime, requests: RequestRows, strides: StrideRows) -> Iterator[str]:
    """Yield what of the run lies beyond the runs that were measured."""
    found = {
        "prompts": (float(requests.input_tokens.mean()), regime.max_input_tokens, "tokens"),
        "answers": (float(requests.output_tokens.mean()), regime.max_output_tokens, "tokens"),
        "requests at once": (float(strides.running.max(initial=0)), regime.max_running, "in flight"),
    }
    for what, (value, largest, unit) in found.items():
        if value > largest * 1.01:
            yield f"{what} of {value:,.0f} {unit} are beyond the {largest:,.0f} that were measured"


def _statement(table: ErrorTable, regime: ErrorRegime, beyond: list[str], wider: float) -> str:
    kind = " ".join(filter(None, (regime.engine, ", ".join(regime.gpus), regime.load)))
    statement = f"intervals hold nine in ten of {regime.rows} measured runs of the same kind ({kind or 'any'})"
    if wider > 1:
        statement += f", made {wider:.1f} times wider"
    return "; ".join((statement, *beyond))


def capacity_warnings(
    pools: Sequence[ReadyPool], contexts: Sequence[PoolContext], strides: StrideRows
) -> Iterator[str]:
    """Say so where an error of 15 % in the size of the KV cache would change whether requests wait for it."""
    for pool, context in zip(pools, contexts, strict=True):
        warning = _capacity_warning(pool.setup, context.strides(strides))
        if warning is not None:
            yield f"{pool.name}: {warning}" if pool.name else warning


def _capacity_warning(setup: Setup, strides: StrideRows) -> str | None:
    if setup.memory is None or not len(strides.start_s):
        return None
    peak = float(strides.kv_blocks.max()) / setup.engine.num_blocks
    blocked = (strides.blocked == Blocked.KV_BLOCKS) & (strides.waiting > 0)
    share = float(np.dot(blocked, strides.duration_s) / strides.duration_s.sum())
    if peak < _NEAR or share > 0.5:
        return None
    return (
        f"the KV cache is {peak:.0%} full at its peak: saturation hinges on its size, which is known within some 15 %;"
        " if it is smaller, the time to the first token may be longer by orders of magnitude"
    )
