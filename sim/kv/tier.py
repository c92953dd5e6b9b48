"""Memory beside the pool of KV blocks."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Tier"]


@dataclass(frozen=True, slots=True)
class Tier:
    """Room for *blocks* blocks, each of which takes *block_s* to move [s]."""

    blocks: int
    block_s: float
