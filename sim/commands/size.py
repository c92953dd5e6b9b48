"""``sim size``."""

from sim.report.size import add_arguments
from sim.report.size import run_size as run

__all__ = ["add_arguments", "run"]
