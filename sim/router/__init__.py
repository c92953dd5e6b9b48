"""Routers: one policy a file, chosen by ``kind``."""

from typing import TYPE_CHECKING

from sim.policy import union_of
from sim.router.base import Choice, Load, Router
from sim.router.fleet import Fleet

if TYPE_CHECKING:
    AnyRouter = Router
else:
    AnyRouter = union_of(__name__, Router)

__all__ = ["AnyRouter", "Choice", "Fleet", "Load", "Router"]
