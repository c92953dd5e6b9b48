"""How the router's choices spread over the experts: one file a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.moe.popularity.base import Popularity, limited
from sim.moe.popularity.uniform import Uniform
from sim.policy import union_of

__all__ = ["AnyPopularity", "Popularity", "Uniform", "limited"]

if TYPE_CHECKING:
    AnyPopularity = Any
else:
    AnyPopularity = union_of(__name__, Popularity)
