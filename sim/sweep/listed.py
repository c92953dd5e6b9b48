"""Points written one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import ConfigDict, Field

from sim.sweep.base import Settings, Sweep

__all__ = ["Listed"]


class Listed(Sweep):
    """The points as they are written; a path that one leaves out is as the experiment has it."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["list"] = "list"
    points: list[Settings] = Field(min_length=1, description="Values by dotted path.")

    def settings(self) -> Iterator[Settings]:
        """Yield the points as written."""
        yield from self.points
