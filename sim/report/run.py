"""What ``sim run`` shows and writes of a result."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sim.cluster import Engine
from sim.experiment import Experiment, defaults_used
from sim.profiles.engine import LATEST
from sim.report.files import manifest_of, write_run
from sim.report.json import to_json
from sim.report.table import WIDTH, print_table
from sim.report.vllm import vllm_block
from sim.router.disaggregation import Disaggregation
from sim.scheduler import Scheduler
from sim.simulate import ReadyPool, Result
from sim.simulate.disaggregation import decided
from sim.simulate.inputs import input_files
from sim.units import format_bytes

__all__ = ["defaults_text", "show", "write"]

_MOST_VALUES = 8  # of a list that is spelled out among the defaults
_COSTS_OF_A_RUN = ("costs.pue", "costs.server_power_factor")  # its power of the facility


def show(result: Result, form: str) -> None:
    """Print *result* on standard output as ``table``, ``vllm`` or ``json``."""
    if form == "table":
        print_table(result.summary, list(_about(result)))
        return
    values = result.summary.as_dict()
    if form == "json":
        print(to_json(values))
        return
    arrivals = result.experiment.workload.arrivals
    rate = getattr(arrivals, "rate", None)
    concurrency = getattr(arrivals, "concurrency", getattr(arrivals, "max_concurrency", None))
    print(vllm_block(values, request_rate=rate or float("inf"), max_concurrency=concurrency))


def write(result: Result, folder: Path) -> list[Path]:
    """Write all files of *result* into *folder*, which exists, and return their paths."""
    experiment = result.experiment
    spread = result.context.spread
    manifest = manifest_of(experiment.seed, input_files(experiment))
    if spread is not None:
        manifest["draws"] = spread.draws
    return write_run(
        folder,
        result.summary,
        result.requests,
        result.strides,
        kv_blocks=[pool.setup.engine.num_blocks for pool in result.pools for _ in range(pool.replicas)],
        lives=result.lives,
        manifest=manifest | {"experiment": _as_written(experiment), "defaults": _defaults(result)},
    )


def defaults_text(result: Result, width: int = WIDTH) -> str:
    """Name every field that the experiment left open, with the value that was used, a section a line.

    Lines have at most *width* columns, where words fit.
    """
    sections: defaultdict[str, list[str]] = defaultdict(list)
    for path, value in _defaults(result).items():
        section, _, name = path.rpartition(".")
        sections[section].append(f"{name}={_yaml(value)}")
    texts = [(f"{section}: " if section else "") + ", ".join(sections[section]) for section in sorted(sections)]
    lines = (textwrap.fill(text, width, initial_indent="  ", subsequent_indent="    ") for text in texts)
    return "\n".join(("defaults used:", *lines))


def _as_written(experiment: Experiment) -> dict[str, Any]:
    """Return the fields that somebody set: to run these again is to run the same again."""
    return experiment.model_dump(mode="json", exclude_unset=True)


def _defaults(result: Result) -> dict[str, Any]:
    """Return the dotted path and value of every field that was left open, has a value and bears on the run."""
    used = {path: value for path, value in defaults_used(result.experiment) if _bears_on(path, result)}
    for summary in result.summary.pools:
        if summary.price is not None and summary.price.offer is not None:
            path = f"{summary.name}: prices.gpu_hour_usd" if summary.name else "prices.gpu_hour_usd"
            used[path] = f"{summary.price.usd_per_hour:g} ({summary.price.offer.statement})"
    for pool in result.pools:
        flags = pool.setup.flags.left_open(pool.experiment.engine)
        used |= {f"{pool.name}: {path}" if pool.name else path: value for path, value in flags}
    used |= _engines_own(result)
    return {path: value for path, value in sorted(used.items()) if value is not None}


def _bears_on(path: str, result: Result) -> bool:
    """Tell whether a field is asked by a run: replicas may never start or stop, and months are priced by ``cost``."""
    if path.startswith("lifecycle."):
        return result.lives is not None
    return path in _COSTS_OF_A_RUN or not path.startswith(("costs.", "prices.electricity"))


def _engines_own(result: Result) -> dict[str, Any]:
    """Return what the engine decided of how its prefill and decode replicas work together, and every other default."""
    options = decided(result.experiment, result.pools)
    if options is None:
        return {}
    written = result.experiment.disaggregation or Disaggregation()
    open_ones = [name for name in ("first_token", "order") if getattr(written, name) is None]
    own = {f"disaggregation.{name}": getattr(options, name) for name in open_ones}
    return dict(defaults_used(written, "disaggregation.")) | own


def _yaml(value: Any) -> str:
    if isinstance(value, list | tuple) and len(value) > _MOST_VALUES:
        return f"({len(value)} values)"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _about(result: Result) -> Iterator[str]:
    """Say in a few lines what was simulated."""
    for pool in result.pools:
        title = f"{result.experiment.name}: {pool.name}" if pool.name else result.experiment.name
        yield from _about_pool(title, pool)
    arrivals = result.experiment.workload.arrivals
    written = arrivals.model_dump(mode="json", exclude_unset=True, exclude={"kind"})
    options = ", ".join(
        f"{name} {_yaml(value)}" for name, value in written.items() if isinstance(value, str | int | float)
    )
    yield f"{len(result.requests.arrival_s):,} requests, {arrivals.kind} arrivals{f' ({options})' if options else ''}"


def _tables(engine: Engine) -> str:
    """Say what a block holds: tokens, of all layers or of one of several tables."""
    pages = engine.pages
    if pages is None:
        return f"of {engine.block_size} tokens"
    kinds = [(pages.full, f"with all tokens in {pages.block_size}s")]
    kinds += [(each.tables, f"with a window of {each.tokens} in {each.block_size}s") for each in pages.windows]
    kinds += [(pages.states, "with a state")]
    return f"({', '.join(f'{count} {what}' for count, what in kinds if count)} a sequence)"


def _about_pool(title: str, pool: ReadyPool) -> Iterator[str]:
    experiment, setup, engine = pool.experiment, pool.setup, pool.setup.engine
    deployment, parallelism = experiment.deployment, experiment.deployment.parallelism
    gpus = f"{deployment.replicas * parallelism.gpus} x {setup.hardware.name}"
    yield f"{title}: {setup.model.name} on {gpus} ({deployment.replicas} x TP{parallelism.tp})"
    if experiment.autoscaler is not None:
        bounds = f"{experiment.autoscaler.min_replicas} to {experiment.autoscaler.max_replicas} replicas"
        yield f"scaled by {experiment.autoscaler.kind}, {bounds}"
    version = experiment.engine.version
    release = f"{version} (defaults of {setup.version.since})" if version == LATEST else version
    flags = ", ".join(f"{name} {_yaml(value)}" for name, value in _telling(engine.scheduler))
    yield f"{experiment.engine.kind} {release}, {engine.scheduler.kind}{f' ({flags})' if flags else ''}"
    blocks = f"{engine.num_blocks:,} KV blocks {_tables(engine)} a replica"
    if setup.memory is not None:
        weights, kv = format_bytes(setup.memory.weights_bytes), format_bytes(setup.memory.kv_bytes)
        blocks += f"; a GPU holds {weights} of weights and {kv} of KV cache"
    yield blocks


def _telling(scheduler: Scheduler) -> Iterator[tuple[str, Any]]:
    """Yield the options that say what *scheduler* does: the limits that it has, and what is not as usual."""
    for name, field in type(scheduler).model_fields.items():
        value = getattr(scheduler, name)
        limit = name.startswith("max_num_") and value is not None
        if name != "kind" and (limit or value != field.default):
            yield name, value
