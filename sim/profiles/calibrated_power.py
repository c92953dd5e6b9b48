"""What a board draws by what it waits for: shares of its power limit, fitted to measurements."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from sim.profiles.base import Profile

__all__ = ["PowerCalibration"]


class PowerCalibration(Profile):
    """Power draw as shares of the board's limit (TDP)."""

    idle_share: float = Field(ge=0, le=1, description="With a model loaded and nothing to do.")
    waiting_share: float = Field(ge=0, le=1, description="While links, launches or the host set the pace.")
    memory_share: float = Field(ge=0, le=1, description="While memory is read as fast as it can be.")
    compute_share: float = Field(ge=0, le=1, description="While matrix products set the pace.")
    error: float = Field(ge=0, description="Relative error to expect of a mean draw.")

    def busy_share(self, time_shares: Mapping[str, float]) -> float | None:
        """Return the mean draw over the iteration time, of the board's limit; None if what it waits for is not known.

        Parameters
        ----------
        time_shares
            Share of the iteration time by resource: ``compute``, ``memory``, ``link``, ``latency``, ``host``.
        """
        known = {"compute": self.compute_share, "memory": self.memory_share}
        waiting = dict.fromkeys(("link", "latency", "host"), self.waiting_share)
        if not time_shares or not time_shares.keys() <= (known | waiting).keys():
            return None
        return sum(share * (known | waiting)[resource] for resource, share in time_shares.items())
