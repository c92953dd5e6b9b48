"""Replicas, router and clients on one clock; the only room that knows simpy."""

from sim.cluster.cluster import Cluster
from sim.cluster.deadlines import Timeouts
from sim.cluster.engine import Engine, Pool
from sim.cluster.link import Port

__all__ = ["Cluster", "Engine", "Pool", "Port", "Timeouts"]
