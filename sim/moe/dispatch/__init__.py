"""Which copy of an expert serves a token: one file a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sim.moe.dispatch.base import Dispatch
from sim.moe.dispatch.round_robin import RoundRobin
from sim.policy import union_of

__all__ = ["AnyDispatch", "Dispatch", "RoundRobin"]

if TYPE_CHECKING:
    AnyDispatch = Any
else:
    AnyDispatch = union_of(__name__, Dispatch)
