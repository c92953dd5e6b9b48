"""The block tables of a sequence, from the groups of layers that a memory plan makes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sim.kv import Pages, WindowTables
from sim.memory import MemoryPlan
from sim.memory.kv_groups import KvGroup
from sim.profiles.engine_memory import ProfiledMemory

__all__ = ["pages_of"]

_ENDLESS = 2**40  # tokens; a window that nothing leaves


def pages_of(memory: MemoryPlan, longest_chunk: float) -> Pages | None:
    """Return the blocks that a sequence holds in the pool of *memory*; None where all layers share one table.

    Parameters
    ----------
    longest_chunk
        Tokens of one sequence that an iteration computes at most.
    """
    groups = memory.groups
    if len(groups) < 2 and all(map(_keeps_all, groups)):
        return None
    engine = memory.deployment.memory
    batches = engine.in_flight_batches if isinstance(engine, ProfiledMemory) else 1
    full = [group.block_size for group in groups if _keeps_all(group)]
    block_size = min(full or [group.block_size for group in groups])
    return Pages(
        block_size,
        full.count(block_size),
        _windows(groups, block_size),
        states=sum(group.cache.state_bytes > 0 for group in groups),
        in_flight_tokens=batches * longest_chunk,
    )


def _keeps_all(group: KvGroup) -> bool:
    return group.cache.window is None and not group.cache.state_bytes


def _windows(groups: Sequence[KvGroup], block_size: int) -> tuple[WindowTables, ...]:
    """Return the tables with a window, equal ones counted, and those that keep all in blocks of another size."""
    tables = Counter(
        (group.cache.window or _ENDLESS, group.block_size, group.cache.chunked)
        for group in groups
        if not group.cache.state_bytes and not (_keeps_all(group) and group.block_size == block_size)
    )
    return tuple(WindowTables(count, tokens, size, chunked) for (tokens, size, chunked), count in tables.items())
