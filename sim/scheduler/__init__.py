"""Schedulers: one policy a file, chosen by ``kind``."""

from typing import TYPE_CHECKING

from sim.policy import union_of
from sim.scheduler.base import Scheduler
from sim.scheduler.decision import Decision
from sim.scheduler.queue import Queue
from sim.scheduler.running import Running
from sim.scheduler.speculating import Acceptances, Ahead, Speculating
from sim.scheduler.state import State
from sim.scheduler.tabled import Tabled

if TYPE_CHECKING:
    AnyScheduler = Scheduler
else:
    AnyScheduler = union_of(__name__, Scheduler)

__all__ = [
    "Acceptances",
    "Ahead",
    "AnyScheduler",
    "Decision",
    "Queue",
    "Running",
    "Scheduler",
    "Speculating",
    "State",
    "Tabled",
]
