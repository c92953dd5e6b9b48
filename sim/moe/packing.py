"""The two greedy steps of expert placement: who gets another copy, and which rank takes the next item.

Sums and quotients are those of 32-bit floats, and ties go to the lowest index, so that results are those of the
reference implementation (deepseek-ai/EPLB, commit d52c72d5, ``eplb.py``) to the last slot.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sim.moe.expert_map import Integers

__all__ = ["Singles", "pack", "replicate"]

Singles = NDArray[np.float32]


def replicate(loads: Singles, slots: int) -> Integers:
    """Return the expert of each of *slots* copies: every one once, then whoever has most load a copy."""
    experts = len(loads)
    heap = [(-load, expert, 1) for expert, load in enumerate(loads)]
    heapq.heapify(heap)
    copies = list(range(experts))
    for _ in range(slots - experts):
        _, expert, count = heap[0]
        copies.append(expert)
        heapq.heapreplace(heap, (-loads[expert] / np.float32(count + 1), expert, count + 1))
    return np.array(copies, dtype=np.int64)


def pack(loads: Singles, packs: int, labels: Sequence[int] | None = None) -> Integers:
    """Return the items of each pack, shape (packs, items of a pack), in the order in which they came there.

    The heaviest item left goes to the lightest pack with room, and if there are *labels*, to one without the item's
    label where there is such a pack. Where every pack takes one item, item *i* is in pack *i*.
    """
    room = len(loads) // packs
    if room == 1 and labels is None:
        return np.arange(packs, dtype=np.int64)[:, None]
    members: list[list[int]] = [[] for _ in range(packs)]
    present: list[set[int]] = [set() for _ in range(packs)]
    heap = [(np.float32(0), pack) for pack in range(packs)]
    for item in np.argsort(-loads, kind="stable").tolist():
        load, pack = _lightest(heap, present, None if labels is None else labels[item])
        members[pack].append(item)
        if labels is not None:
            present[pack].add(labels[item])
        if len(members[pack]) < room:
            heapq.heappush(heap, (load + loads[item], pack))
    return np.array(members, dtype=np.int64)


def _lightest(
    heap: list[tuple[np.float32, int]], present: list[set[int]], label: int | None
) -> tuple[np.float32, int]:
    """Take the lightest pack without *label* off the *heap*; the lightest of all if each has it."""
    passed = [heapq.heappop(heap)]
    while heap and label in present[passed[-1][1]]:
        passed.append(heapq.heappop(heap))
    chosen = passed[0] if label in present[passed[-1][1]] else passed[-1]
    for other in passed:
        if other is not chosen:
            heapq.heappush(heap, other)
    return chosen
