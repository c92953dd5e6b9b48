"""Whether a model fits on its accelerators, and how many blocks of KV cache are left."""

from sim.memory.deployment import Deployment, kv_dtype_of
from sim.memory.limits import Limits
from sim.memory.nearest import nearest_fits, smallest_tp
from sim.memory.plan import MemoryPlan, plan, plan_memory

__all__ = [
    "Deployment",
    "Limits",
    "MemoryPlan",
    "kv_dtype_of",
    "nearest_fits",
    "plan",
    "plan_memory",
    "smallest_tp",
]
