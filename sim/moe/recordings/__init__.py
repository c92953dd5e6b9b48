"""Files that engines and users record: loads of experts, and maps of slots."""

from sim.moe.recordings.loads import read_loads
from sim.moe.recordings.maps import read_map

__all__ = ["read_loads", "read_map"]
