"""Paged KV cache of one replica: a pool of equal blocks, and the prefix cache over it."""

from sim.kv.cache import KvCache
from sim.kv.eviction import Eviction
from sim.kv.pages import Pages, WindowTables
from sim.kv.tier import Tier
from sim.kv.tiers import TieredKvCache

__all__ = ["Eviction", "KvCache", "Pages", "Tier", "TieredKvCache", "WindowTables"]
