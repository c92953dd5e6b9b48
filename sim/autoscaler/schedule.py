"""By the time of day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from sim.autoscaler.base import Autoscaler, Snapshot

__all__ = ["Schedule"]

_DAY_S = 86_400.0


def _time_of_day(text: str) -> str:
    if re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", text) is None:
        raise ValueError(f"{text!r} is no time of day: write one such as 08:30")
    return text


class Schedule(Autoscaler):
    """So many replicas from each time of day on, every day, whatever the load."""

    kind: Literal["schedule"] = "schedule"
    replicas_from: dict[Annotated[str, AfterValidator(_time_of_day)], Annotated[int, Field(ge=1)]] = Field(
        min_length=1, description='Replicas by the time of day from which on they are wanted, such as {"08:00": 4}.'
    )
    start_hour: float = Field(0.0, ge=0, lt=24, description="Hour of the day at which the run begins [h].")

    def wanted(self, seen: Sequence[Snapshot], current: int) -> int:
        """Return what is written for the time of the last snapshot."""
        now_s = (seen[-1].at_s + 3600 * self.start_hour) % _DAY_S
        changes = sorted((_seconds(text), replicas) for text, replicas in self.replicas_from.items())
        return next((replicas for from_s, replicas in reversed(changes) if from_s <= now_s), changes[-1][1])


def _seconds(time_of_day: str) -> float:
    hours, minutes = time_of_day.split(":")
    return 3600.0 * int(hours) + 60.0 * int(minutes)
