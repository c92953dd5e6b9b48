"""What the accelerators of a run draw."""

from __future__ import annotations

from collections.abc import Mapping

from sim.experiment import Experiment
from sim.metrics.power import GpuPower
from sim.profiles.hardware import Hardware
from sim.profiles.library import load_power

__all__ = ["BOARDS", "gpu_power"]

BOARDS = "boards"
"""Name of the table of power draws."""


def gpu_power(experiment: Experiment, hardware: Hardware, time_shares: Mapping[str, float]) -> GpuPower | None:
    """Return the draw of an accelerator whose iterations wait for resources by *time_shares*; None if not known."""
    calibration = load_power(BOARDS, experiment.folder)
    busy = calibration.busy_share(time_shares)
    if hardware.tdp_w is None or busy is None:
        return None
    costs = experiment.costs
    return GpuPower(
        idle_w=calibration.idle_share * hardware.tdp_w,
        busy_w=busy * hardware.tdp_w,
        facility_factor=costs.server_power_factor * costs.pue,
    )
