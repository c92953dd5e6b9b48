"""What the accelerators of a deployment draw."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GpuPower"]


@dataclass(frozen=True, slots=True)
class GpuPower:
    """Power draw of one accelerator [W], the board alone.

    Attributes
    ----------
    idle_w, busy_w
        Between iterations, and on average during them.
    facility_factor
        Draw of the data centre over that of its accelerators: servers, fans, cooling and losses.
    """

    idle_w: float
    busy_w: float
    facility_factor: float = 1.0

    def mean_w(self, busy: float) -> float:
        """Return the mean draw with iterations running for the share *busy* of the time [W]."""
        return self.idle_w + busy * (self.busy_w - self.idle_w)

    def facility_w(self, busy: float, num_gpus: float) -> float:
        """Return the mean draw of a data centre for *num_gpus* accelerators that are busy for such a share [W]."""
        return self.mean_w(busy) * num_gpus * self.facility_factor
