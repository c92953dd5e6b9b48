"""Speculative decoding: who drafts, one policy a file, and how much of a draft the model accepts."""

from typing import TYPE_CHECKING

from sim.policy import union_of
from sim.speculation.acceptance import Acceptance
from sim.speculation.base import Speculation

if TYPE_CHECKING:
    AnySpeculation = Speculation
else:
    AnySpeculation = union_of(__name__, Speculation)

__all__ = ["Acceptance", "AnySpeculation", "Speculation"]
