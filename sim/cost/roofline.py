"""The cost model from first principles: operations of the model on the calibrated rates of the accelerator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from sim.cost.accelerator import Accelerator
from sim.cost.all_to_all import Exchange
from sim.cost.attention import DecodeAttention, PrefillAttention
from sim.cost.drafting import Drafting
from sim.cost.elementwise import Elementwise
from sim.cost.host import Delay, Host
from sim.cost.pace import CostModel, Rebalances
from sim.cost.pipeline import Pipeline
from sim.cost.plan import BY_ALL_RANKS, SHARED, Plan, windows_of
from sim.cost.rates import Factors
from sim.cost.step import RooflineStep
from sim.cost.two_batches import MixtureLayers, Thresholds, TwoBatches
from sim.cost.uneven_experts import ExpertLoads, Rebalancing, average, loads_of
from sim.errors import ConfigError
from sim.profiles.layers import MoeMlp

if TYPE_CHECKING:
    from sim.cost.all_to_all import Library
    from sim.cost.host import Launches
    from sim.cost.masks import Masks
    from sim.cost.operation import Operation
    from sim.cost.padding import GraphPadding
    from sim.moe.mixture import Mixture, Rebalance
    from sim.profiles.calibrated import HardwareCalibration
    from sim.profiles.draft import Draft
    from sim.profiles.engine import EngineVersion
    from sim.profiles.hardware import Hardware
    from sim.profiles.model import Model
    from sim.profiles.parallelism import Parallelism
    from sim.profiles.quantization import Quantization

__all__ = ["Roofline"]


class Roofline(CostModel):
    """Sum over operations of a smooth roofline each, with constants fitted to kernel measurements.

    The factors are for an engine whose kernels are known to differ; they are 1 without evidence.
    """

    kind: Literal["roofline"] = "roofline"
    compute_factor: float = Field(1.0, gt=0, description="On the compute rate of every kernel.")
    memory_factor: float = Field(1.0, gt=0, description="On the memory rate of every kernel.")
    kernel_time_factor: float = Field(1.0, ge=0, description="On the fixed time of each kernel.")
    kernels: str | None = Field(
        None, description="Engine whose own kernel constants win over the common ones; missing: the one that serves."
    )

    def build(
        self,
        model: Model,
        hardware: Hardware,
        quantization: Quantization,
        parallelism: Parallelism,
        engine_version: EngineVersion,
        calibrated: HardwareCalibration,
        mixture: Mixture | None = None,
        library: Library | None = None,
        *,
        draft: Draft | None = None,
        draft_tokens: float = 0,
        draft_s: float = 0.0,
        masks: Masks | None = None,
        launches: Launches | None = None,
        padding: GraphPadding | None = None,
        thresholds: Thresholds | None = None,
    ) -> RooflineStep:
        """Return the step cost of one replica; of one attention rank where `parallelism.dp` is above 1.

        Routed experts are evenly loaded without a *mixture*, and gathered by collectives without a *library*. Decodes
        verify *draft_tokens* drafted tokens each on average, made by a model (*draft*) or in *draft_s* seconds. *masks*
        are those of structured output, *launches* those of batches beyond the captured graphs, and *padding* fills the
        others up. Batches that reach the *thresholds*, if there are any, run as two halves. Where experts are placed
        anew while serving, the step is the mean over placements and has theirs as `rebalances`.
        """
        factors = Factors(self.compute_factor, self.memory_factor, self.kernel_time_factor)
        fused = engine_version.fp8_inputs_fused
        accelerator = Accelerator(hardware, calibrated, factors, self.kernels or "", fused)
        nodes = -(-parallelism.tp * parallelism.dp // hardware.gpus_per_node)
        placements = [{}] if mixture is None else loads_of(mixture, model, parallelism.ep, nodes)
        rebalance = None if mixture is None else mixture.rebalance
        kv = quantization.kv_cache or model.dtype
        each = 1 + draft_tokens
        reads = each if engine_version.batch_expansion else 1
        common = Plan(model, accelerator, quantization, parallelism, kv, {}, library, each, reads=reads)
        host, delay = engine_version.host, engine_version.request_delay
        own_host = Host(host.per_iteration_s, host.per_sequence_s, host.per_prefill_s, host.overlapped, masks, launches)
        own_delay = Delay(delay.fixed_s, delay.per_prompt_token_s)

        def under(loads: ExpertLoads, rebalance: Rebalance | None = None) -> RooflineStep:
            plan = replace(common, loads=loads, rebalance=rebalance)
            step = _step(plan, tuple(plan.layers()), own_host, own_delay, padding)
            drafting = None if draft is None else _drafting(plan, draft, int(draft_tokens), padding)
            two_batches = None if thresholds is None else _two_batches(plan, thresholds)
            return replace(step, drafting=drafting, draft_s=draft_s, two_batches=two_batches)

        step = under(average(placements), rebalance)
        if rebalance is None:
            return step
        stalls_s = tuple(_stall_s(replace(common, loads=loads, rebalance=rebalance)) for loads in placements)
        return replace(step, rebalances=Rebalances(rebalance.step_interval, tuple(map(under, placements)), stalls_s))


def _stall_s(plan: Plan) -> float:
    return sum(each.stall_s for each in plan.layers() if isinstance(each, Rebalancing))


def _step(
    plan: Plan, layers: tuple[Operation, ...], host: Host, delay: Delay, padding: GraphPadding | None = None
) -> RooflineStep:
    parallelism = plan.parallelism
    decode = tuple(each for each in layers if isinstance(each, DecodeAttention))
    prefill = tuple(each for each in layers if isinstance(each, PrefillAttention))
    states = tuple(each for each in layers if isinstance(each, Elementwise) and each.rows == "sequences")
    apart = parallelism.dp > 1 or (padding is not None and not padding.experts)
    group = tuple(each for each in layers if apart and each.name in BY_ALL_RANKS)
    return RooflineStep(
        by_tokens=tuple(each for each in layers if each not in (*decode, *prefill, *states, *group)),
        by_sequences=states,
        decode=decode,
        prefill=prefill,
        by_group=group,
        head=tuple(plan.head()),
        transfers=(plan.transfer(),) if parallelism.pp > 1 else (),
        pipeline=Pipeline(parallelism.pp, plan.model.num_layers),
        host=host,
        delay=delay,
        windows=windows_of(plan.model),
        attention_ranks=parallelism.dp,
        tokens_each=plan.tokens_each,
        padding=padding,
    )


def _two_batches(plan: Plan, thresholds: Thresholds) -> TwoBatches:
    """Return the layers of *plan* for batches that are split."""

    def part(operations: Iterable[Operation]) -> RooflineStep:
        return replace(_step(plan, tuple(operations), Host(), Delay()), head=(), transfers=())

    mixed = [kind for kind in plan.model.layers if isinstance(kind.mlp, MoeMlp)]
    rest = [each for kind in plan.model.layers if kind not in mixed for each in plan.of(kind)]
    return TwoBatches(part(rest), tuple(_mixture(tuple(plan.of(kind)), part) for kind in mixed), thresholds)


def _mixture(
    operations: tuple[Operation, ...], part: Callable[[Iterable[Operation]], RooflineStep]
) -> MixtureLayers:
    """Return the *operations* of layers with routed experts by their place in the schedule."""
    there, back = (each for each in operations if isinstance(each, Exchange))
    shared = tuple(each for each in operations if each.name in SHARED)
    experts = tuple(each for each in operations if each.name in BY_ALL_RANKS and each not in (there, back))
    before = part(each for each in operations if each not in (there, back, *shared, *experts))
    return MixtureLayers(before, shared, experts, there, back)


def _drafting(plan: Plan, draft: Draft, draft_tokens: int, padding: GraphPadding | None) -> Drafting:
    """Return what *draft* computes, on the ranks of one stage of the model that *plan* serves, or on fewer."""
    alone = {"tp": draft.tp, "ep": min(plan.parallelism.ep, draft.tp)} if draft.tp is not None else {}
    parallelism = plan.parallelism.model_copy(update={"pp": 1} | alone)
    own = replace(
        plan, model=draft.model, quantization=draft.quantization, parallelism=parallelism, tokens_each=1, reads=1
    )
    joined = (own.joined(draft.joined_features),) if draft.joined_features else ()
    step = _step(own, (*own.layers(), *joined), Host(), Delay(), padding)
    windows = windows_of(plan.model)
    if unknown := [window for window in step.windows if window not in windows]:
        message = f"{draft.model.name} has an attention window of {unknown[0]} tokens, which {plan.model.name} has not"
        raise ConfigError(message, path="engine.speculative")
    return Drafting(step, draft_tokens, tuple(windows.index(window) for window in step.windows))
