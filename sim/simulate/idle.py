"""What an experiment says and nothing looks at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.admission.token_bucket import TokenBucket
from sim.experiment import Experiment
from sim.profiles.command_line import ignored
from sim.request import Request, Status
from sim.router.length_based import LengthBased
from sim.simulate.pools import ReadyPool
from sim.workload.drawn import Drawn
from sim.workload.traffic import Traffic

__all__ = ["idle_warnings", "refuse_idle_admission"]


def refuse_idle_admission(experiment: Experiment, requests: Sequence[Request]) -> None:
    """Raise `ConfigError` where admission tells apart what no request has, or protects every one of the *requests*."""
    admission = experiment.admission
    if admission is None:
        return
    urgent = admission.protect_priority
    if urgent is not None and all(request.priority <= urgent for request in requests):
        message = f"every request has a priority value of {urgent} or less, so that none is ever turned away"
        raise experiment.error("admission.protect_priority", message)
    each = admission.each if isinstance(admission, TokenBucket) else "all"
    if each != "all" and not any(request.tenant if each == "tenant" else request.traffic_class for request in requests):
        raise experiment.error("admission.each", f"no request has a {each}: name them in workload.classes")


def idle_warnings(experiment: Experiment, pools: Sequence[ReadyPool], traffic: Traffic) -> Iterator[str]:
    """Say what has no effect in this run."""
    yield from _priorities(experiment, pools)
    yield from _long_prompts(experiment, pools)
    yield from _asked_at_once(traffic)
    yield from _structured(experiment, traffic)
    for pool in pools:
        yield from _flags(pool.experiment)
        yield from _graphs(pool.experiment)
        yield from _exchange(pool.experiment)
    comes_and_goes = experiment.failures is not None or any(pool.experiment.autoscaler is not None for pool in pools)
    if experiment.lifecycle.model_fields_set and not comes_and_goes:
        yield "lifecycle has no effect: without autoscaler or failures no replica starts or stops"


def _priorities(experiment: Experiment, pools: Sequence[ReadyPool]) -> Iterator[str]:
    """Say so where classes differ in urgency and no scheduler looks at it."""
    priorities = {each.priority or 0 for each in experiment.workload.classes}
    if len(priorities) > 1 and all(pool.setup.engine.scheduler.order != "priority" for pool in pools):
        yield "no scheduler serves by the priorities of classes: set engine.scheduler.order: priority"


def _flags(experiment: Experiment) -> Iterator[str]:
    """Say which flags of the engine change no figure."""
    engine = experiment.engine
    for why, found in ignored(engine.flags or (), engine.kind, experiment.folder).items():
        yield f"engine.flags: {', '.join(found)} without effect: {why}"


def _graphs(experiment: Experiment) -> Iterator[str]:
    """Say so where no kernel is launched."""
    if experiment.cost_model.kind != "affine":
        return
    for name in ("max_captured_batch", "captured_batches"):
        if getattr(experiment.engine, name) is not None:
            yield f"engine.{name} takes memory only: the affine cost model knows no host"
    if experiment.engine.graph_padding:
        yield "engine.graph_padding plays no part: the affine cost model knows no graphs"


def _exchange(experiment: Experiment) -> Iterator[str]:
    """Say so where no token has to be carried to its experts."""
    if experiment.engine.all_to_all is not None and experiment.deployment.parallelism.dp == 1:
        yield "engine.all_to_all has no effect without attention data parallelism: deployment.parallelism.dp is 1"
    elif experiment.engine.all_to_all is not None and experiment.cost_model.kind == "affine":
        yield "engine.all_to_all has no effect: the affine cost model knows no experts"


def _structured(experiment: Experiment, traffic: Traffic) -> Iterator[str]:
    """Say so where structured output takes no time."""
    asked = not isinstance(traffic.requests, Drawn) and any(request.schema for request in traffic.requests)
    if experiment.engine.structured_output is not None and not asked:
        yield "engine.structured_output has no effect: no request of workload.structured_output asks for a grammar"
    elif asked and experiment.engine.structured_output is None and not experiment.workload.structured:
        yield "schemas of the trace take no time: write engine.structured_output, such as {}"
    elif asked and experiment.cost_model.kind == "affine":
        yield "structured output takes no time: the affine cost model knows no host"


def _long_prompts(experiment: Experiment, pools: Sequence[ReadyPool]) -> Iterator[str]:
    """Say so where all replicas are for short prompts."""
    router, replicas = experiment.router, sum(pool.replicas for pool in pools)
    if isinstance(router, LengthBased) and router.short_replicas >= replicas:
        yield f"prompts are not parted by length: all {replicas} replicas are below router.short_replicas"


def _asked_at_once(traffic: Traffic) -> Iterator[str]:
    """Say so where users of a closed loop were turned away and asked again at the same instant."""
    if traffic.slots_open_s is None or traffic.think_s is not None:
        return
    refused = [request for request in traffic.requests if request.status is Status.REJECTED]
    at_once = len(refused) - len({request.arrival_s for request in refused})
    if 2 * at_once > len(traffic.requests):
        yield (
            f"{at_once} requests were turned away at an instant at which others were, since users without a pause ask"
            " again at once: give workload.arrivals.think_s"
        )
