"""Workloads: when requests arrive, how long they are, and traces of real ones."""

from sim.workload.client import Client
from sim.workload.traffic import Measured, Traffic
from sim.workload.workload import Workload, generate

__all__ = ["Client", "Measured", "Traffic", "Workload", "generate"]
