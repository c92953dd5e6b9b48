"""Search policies, chosen by ``kind``: which question `sim search` answers about an experiment."""

from typing import TYPE_CHECKING

from sim.policy import union_of
from sim.search.base import Search, Users
from sim.search.space import Space

__all__ = ["AnySearch", "Search", "Space", "Users"]

if TYPE_CHECKING:
    AnySearch = Search
else:
    AnySearch = union_of(__name__, Search)
