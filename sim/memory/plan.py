"""Does it fit, and how many blocks of KV cache: answered once, before time starts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sim.errors import InfeasibleError
from sim.memory.budget import RankMemory, rank_memory
from sim.memory.deployment import Deployment
from sim.memory.kv_groups import KvGroup
from sim.memory.limits import Limits
from sim.memory.pool import Pool, pool
from sim.memory.stages import obstacles, stages
from sim.profiles.draft import Draft
from sim.profiles.engine_memory import EngineMemory, ProfiledMemory, SlotMemory
from sim.profiles.hardware import Hardware
from sim.profiles.model import Model
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Quantization
from sim.units import GIB

__all__ = ["MemoryPlan", "plan", "plan_memory"]

_SCALE_BLOCK = 128  # fp8 weights with one scale a 128 x 128 block cannot be cut within a block


def plan_memory(
    model: Model,
    hardware: Hardware,
    quantization: Quantization,
    parallelism: Parallelism,
    memory: EngineMemory,
    limits: Limits,
    draft: Draft | None = None,
) -> MemoryPlan:
    """Divide the memory of every rank; what does not fit is said by the plan, and raised by its `require`."""
    return plan(Deployment(model, hardware, quantization, parallelism, memory, limits, draft))


def plan(deployment: Deployment) -> MemoryPlan:
    """Divide the memory of every rank of *deployment*."""
    model, parallelism = deployment.model, deployment.parallelism
    blocks = "fp8_block" in {model.dtype_of(part, deployment.quantization) for part in ("mlp", "experts")}
    made = pool(deployment)
    cuts = stages(model, parallelism.pp)
    return MemoryPlan(
        deployment,
        ranks=tuple(map(rank_memory, [deployment] * len(cuts), cuts, made.state_bytes)),
        pool=made,
        obstacles=tuple(obstacles(model, parallelism, _SCALE_BLOCK if blocks else 1)),
    )


def _count(sequences: int) -> str:
    return f"{sequences:,} sequence{'s' if sequences > 1 else ''}"


@dataclass(frozen=True)
class MemoryPlan:
    """The memory of every rank of one replica, and its pool of KV blocks.

    Attributes
    ----------
    ranks
        One entry a pipeline stage; the ranks of a stage are equal.
    obstacles
        Why the ranks cannot share the model; empty when they can.
    """

    deployment: Deployment
    ranks: tuple[RankMemory, ...]
    pool: Pool
    obstacles: tuple[str, ...]

    @property
    def groups(self) -> tuple[KvGroup, ...]:
        """Layers by block table; all groups draw on one pool."""
        return self.pool.groups

    @property
    def weights_bytes(self) -> float:
        """Weights of the first rank, whose memory is what an engine logs [B]."""
        return self.ranks[0].weights_bytes

    @property
    def activation_bytes(self) -> float:
        """Peak of activations of the first rank [B]."""
        return self.ranks[0].activation_bytes

    @property
    def non_torch_bytes(self) -> float:
        """Memory outside the framework's pool on the first rank [B]."""
        return self.ranks[0].non_torch_bytes

    @property
    def cuda_graph_bytes(self) -> float:
        """Captured graphs of the first rank, whether or not the engine takes them off the KV cache [B]."""
        return self.ranks[0].cuda_graph_bytes

    @property
    def kv_bytes(self) -> float:
        """What the first rank has left for its KV cache [B]; below zero where it lacks memory."""
        return self.ranks[0].kv_bytes

    @property
    def kv_bytes_per_token(self) -> float:
        """Growth of the first rank's cache with each token of a sequence that is beyond every window [B]."""
        first = stages(self.deployment.model, self.deployment.parallelism.pp)[0]
        growing = [group for group in self.groups if group.cache.window is None]
        return sum(group.cache.token_bytes * sum(i in first for i in group.layers) for group in growing)

    @property
    def block_size(self) -> int:
        """Tokens of the smallest block of any group."""
        return min((group.block_size for group in self.groups), default=self.deployment.limits.block_size)

    @cached_property
    def blocks_by_stage(self) -> tuple[int, ...]:
        """Blocks that each stage has memory for."""
        if self.obstacles:
            return (0,) * len(self.ranks)
        pairs = zip(self.ranks, self.pool.block_bytes, strict=True)
        return tuple(max(0, int(rank.kv_bytes // cost)) if cost else 0 for rank, cost in pairs)

    @cached_property
    def num_blocks(self) -> int:
        """Blocks of the pool: what the poorest stage has, or all that fixed slots can use."""
        most = min(self.blocks_by_stage)
        return min(most, self.blocks_needed) if isinstance(self.deployment.memory, SlotMemory) else most

    @property
    def sequences_needed(self) -> int:
        """Sequences of `max_model_len` that must fit at once: those asked for, or all fixed slots."""
        engine, limits = self.deployment.memory, self.deployment.limits
        own_contexts = isinstance(engine, SlotMemory) and not engine.shared_context
        return limits.max_num_seqs if own_contexts else limits.min_sequences

    @property
    def blocks_needed(self) -> int:
        """Blocks without which the deployment does not fit."""
        return self.sequences_needed * self.blocks_of(self.deployment.limits.max_model_len)

    @property
    def binding_stage(self) -> int:
        """The pipeline stage with the fewest blocks."""
        return self.blocks_by_stage.index(min(self.blocks_by_stage))

    @property
    def binding_rank(self) -> int:
        """The first rank of the binding stage; ranks count through the stages, tp of them in each."""
        return self.binding_stage * self.deployment.parallelism.tp

    def blocks_of(self, tokens: int) -> int:
        """Count the blocks that a sequence of *tokens* holds at most, over all groups."""
        engine, limits = self.deployment.memory, self.deployment.limits
        batches = engine.in_flight_batches if isinstance(engine, ProfiledMemory) else 1
        return sum(group.blocks(tokens, batches * limits.max_num_batched_tokens) for group in self.groups)

    def concurrency(self, tokens: int) -> float:
        """Return how many sequences of *tokens* the pool holds at once."""
        needed = self.blocks_of(tokens)
        return self.num_blocks / needed if needed else float(self.deployment.limits.max_num_seqs)

    @property
    def max_concurrency(self) -> float:
        """Sequences of the full `max_model_len` that the pool holds at once."""
        return self.concurrency(self.deployment.limits.max_model_len)

    @property
    def kv_tokens(self) -> int:
        """'GPU KV cache size' of vLLM's log: with several groups a derived number, defined anew in 0.21."""
        engine = self.deployment.memory
        if len(self.groups) > 1 and isinstance(engine, ProfiledMemory) and engine.log_tokens == "requests":
            return int(self.max_concurrency * self.deployment.limits.max_model_len)
        return self.num_blocks // max(1, len(self.groups)) * self.block_size

    @property
    def longest_sequence(self) -> int:
        """Largest `max_model_len` with which it would fit, all else equal [tokens]."""
        ceiling = max(self.deployment.model.max_position_embeddings, self.deployment.limits.max_model_len)
        each = min(self.blocks_by_stage) // self.sequences_needed
        return bisect_right(range(1, ceiling + 1), each, key=self.blocks_of)

    @property
    def fits(self) -> bool:
        """There are blocks for the sequences needed; with one of them, the engine starts."""
        return not self.obstacles and self.ranks[self.binding_stage].kv_bytes > 0 and not self._lacks_blocks

    @property
    def _lacks_blocks(self) -> bool:
        return min(self.blocks_by_stage) < self.blocks_needed

    @property
    def reason(self) -> str:
        """Why it does not fit: what is needed and what there is; empty when it fits."""
        return "" if self.fits else "; ".join(self.shortage)

    @property
    def shortage(self) -> tuple[str, str]:
        """What a deployment that does not fit needs, and what it has."""
        hardware, rank = self.deployment.hardware, self.ranks[self.binding_stage]
        if self.obstacles:
            return f"{self.deployment.model.name} cannot be cut so", "; ".join(self.obstacles)
        usable, visible = rank.usable_bytes / GIB, rank.visible_bytes / GIB
        has = f"{usable:.2f} GiB usable on {hardware.name}, which has {visible:.2f} GiB"
        if rank.kv_bytes <= 0:
            beside = (rank.usable_bytes - rank.weights_bytes - rank.kv_bytes) / GIB
            needs = f"weights {rank.weights_bytes / GIB:.2f} GiB + {beside:.2f} GiB beside them"
            return f"{needs} leave nothing for the KV cache ({-rank.kv_bytes / GIB:.2f} GiB too much)", has
        tokens = self.deployment.limits.max_model_len
        needed = self.blocks_needed * self.pool.block_bytes[self.binding_stage] / GIB
        needs = f"{_count(self.sequences_needed)} of {tokens:,} tokens: {needed:.2f} GiB of KV cache needed"
        return needs, f"{rank.kv_bytes / GIB:.2f} GiB left of {has}"

    def require(self, nearest: Sequence[str] = ()) -> None:
        """Raise an `InfeasibleError` with the *nearest* changes that fit, if the plan does not."""
        if not self.fits:
            raise InfeasibleError(*self.shortage, nearest)

    def to_json(self) -> dict[str, Any]:
        """Return the plan per accelerator, as the engine would log it."""
        return {
            "weights_gib": self.weights_bytes / GIB,
            "activation_gib": self.activation_bytes / GIB,
            "non_torch_gib": self.non_torch_bytes / GIB,
            "cuda_graph_gib": self.cuda_graph_bytes / GIB,
            "kv_gib": self.kv_bytes / GIB,
            "kv_tokens": self.kv_tokens,
            "kv_blocks": self.num_blocks,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "max_concurrency": self.max_concurrency,
            "fits": self.fits,
            "reason": self.reason or None,
            "binding_rank": self.binding_rank,
        }
