"""Autoscalers: one policy a file, chosen by ``kind``."""

from typing import TYPE_CHECKING

from sim.autoscaler.base import Autoscaler, Snapshot
from sim.autoscaler.controller import Controller
from sim.policy import union_of

if TYPE_CHECKING:
    AnyAutoscaler = Autoscaler
else:
    AnyAutoscaler = union_of(__name__, Autoscaler)

__all__ = ["AnyAutoscaler", "Autoscaler", "Controller", "Snapshot"]
