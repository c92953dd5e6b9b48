"""What breaks, when, for how long, and what becomes of requests in flight. Knows no clock."""

from sim.failures.events import Drain, Event, Loss, RollingUpdate, RouterLoss, Slow
from sim.failures.failures import Failures, InFlight
from sim.failures.process import strikes
from sim.failures.spares import enough_ready, spares_for
from sim.failures.topology import Topology

__all__ = [
    "Drain",
    "Event",
    "Failures",
    "InFlight",
    "Loss",
    "RollingUpdate",
    "RouterLoss",
    "Slow",
    "Topology",
    "enough_ready",
    "spares_for",
    "strikes",
]
