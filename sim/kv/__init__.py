"""Paged KV cache of one replica: a pool of equal blocks, and the prefix cache over it."""

from sim.kv.cache import KvCache

__all__ = ["KvCache"]
