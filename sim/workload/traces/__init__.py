"""Reading of request traces: the canonical form, and adapters for what others publish."""

from sim.workload.traces.adapter import AUTO, Adapter, all_adapters, companions, known_format
from sim.workload.traces.reader import Trace, read_trace
from sim.workload.traces.row import TraceRow
from sim.workload.traces.ticks import tick_s

__all__ = ["AUTO", "Adapter", "Trace", "TraceRow", "all_adapters", "companions", "known_format", "read_trace", "tick_s"]
