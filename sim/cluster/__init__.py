"""Replicas, router and clients on one clock; the only room that knows simpy."""

from sim.cluster.cluster import Cluster, Engine

__all__ = ["Cluster", "Engine"]
