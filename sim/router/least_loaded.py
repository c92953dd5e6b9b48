"""The replica with the fewest requests."""

from __future__ import annotations

from typing import ClassVar, Literal

from sim.router.base import Load
from sim.router.least import LeastOf

__all__ = ["LeastLoaded"]


class LeastLoaded(LeastOf):
    """The replica with the fewest outstanding requests (join the shortest queue); of several the first.

    A gateway that counts what it sends knows this without asking: `least_conn` of nginx, `LEAST_REQUEST` of Envoy.
    """

    engines: ClassVar[bool] = False
    kind: Literal["least_loaded"] = "least_loaded"

    def measure(self, replica: Load) -> float:
        """Return the outstanding requests."""
        return replica.outstanding
