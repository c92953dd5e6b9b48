"""What an autoscaler sees of a pool, and what it wants."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from sim.policy import Policy
from sim.units import Seconds

__all__ = ["Autoscaler", "Metered", "Share", "Snapshot", "Window", "growth"]

Window = Annotated[
    Seconds,
    Field(gt=0, description="Time that the metric is taken over, as a rate of Prometheus is [s]."),
]


class Snapshot(NamedTuple):
    """A pool at one moment; what is said to be a counter only grows, also inside an iteration.

    Attributes
    ----------
    at_s
        When it was taken [s].
    ready, starting
        Replicas.
    gpus
        Accelerators of a replica.
    waiting
        Requests in the queues of the ready replicas, and those that wait at the gateway for one.
    running
        Requests that the ready replicas have admitted.
    kv_use
        Share of their KV blocks in use, on average.
    serving_s, busy_s
        Counters of the time that replicas could serve, and that an iteration ran on them [s].
    frontend_s
        Counter of the time that went into HTTP and tokenisation [s].
    tokens
        Counter of tokens computed, prompts included [tokens].
    arrivals
        Counter of requests that came for the pool.
    ttft_s
        Times to first token of the requests that got theirs since the snapshot before [s].
    """

    at_s: float = 0.0
    ready: int = 1
    starting: int = 0
    gpus: int = 1
    waiting: int = 0
    running: int = 0
    kv_use: float = 0.0
    serving_s: float = 0.0
    busy_s: float = 0.0
    frontend_s: float = 0.0
    tokens: int = 0
    arrivals: int = 0
    ttft_s: tuple[float, ...] = ()

    @property
    def active(self) -> bool:
        """Whether anybody wants to be served."""
        return self.waiting > 0 or self.running > 0


class Autoscaler(Policy):
    """Decides how many replicas a pool should have, as the Horizontal Pod Autoscaler of Kubernetes does.

    Its defaults are those of Kubernetes: a decision every 15 s, none within 10 % of the target, down only to the
    highest wish of the last 300 s, up at most to twice as many or four more at a time. To zero and from it as KEDA
    does: after 300 s without anything to do, and when somebody waits. Remembers nothing itself: a `Controller` does.
    """

    min_replicas: int = Field(1, ge=1, description="Fewest replicas, unless there is nothing to do at all.")
    max_replicas: int = Field(ge=1, description="Most replicas.")
    scale_to_zero: bool = Field(False, description="Keep none after `idle_s` without requests.")
    idle_s: Seconds = Field(300.0, ge=0, description="Time without requests before that [s].")
    interval_s: Seconds = Field(15.0, ge=1e-3, description="Time between two decisions [s].")
    lag_s: Seconds = Field(15.0, ge=0, description="Age of the metric when it is decided upon [s].")
    tolerance: float = Field(0.1, ge=0, lt=1, description="Relative distance from the target at which nothing is done.")
    stabilization_up_s: Seconds = Field(0.0, ge=0, description="Up only to the lowest wish of so long [s].")
    stabilization_down_s: Seconds = Field(300.0, ge=0, description="Down only to the highest wish of so long [s].")
    cooldown_up_s: Seconds = Field(0.0, ge=0, description="Shortest time between two steps up [s].")
    cooldown_down_s: Seconds = Field(0.0, ge=0, description="Shortest time between any step and one down [s].")
    step_up: int | None = Field(
        None, ge=1, description="Most replicas more at a time; missing: as many as there are, or 4 if that is more."
    )
    step_down: int | None = Field(None, ge=1, description="Most replicas fewer at a time; missing: any number.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if "idle_s" in self.model_fields_set and not self.scale_to_zero:
            raise ValueError("idle_s counts with scale_to_zero only")
        if self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas {self.min_replicas} is more than max_replicas {self.max_replicas}")
        return self

    @abstractmethod
    def wanted(self, seen: Sequence[Snapshot], current: int) -> int:
        """Return how many replicas there should be, from snapshots as old as `lag_s` and older, the newest last.

        *current* are starting or ready now, one at least. Bounds, windows and steps are not its business.
        """

    def _of_total(self, total: float, each: float, current: int) -> int:
        """Return how many replicas *total* takes if each bears *each*: `AverageValue` of Kubernetes."""
        return current if self._near(total / (each * current)) else _whole(total / each)

    def _of_share(self, share: float, target: float, snapshot: Snapshot, current: int) -> int:
        """Return how many replicas bring *share*, a mean over the ready ones, to *target*: `Utilization` of Kubernetes.

        Upwards the starting ones count as if they had nothing to do, so that they are waited for.
        """
        ratio = share / target
        if math.isnan(ratio) or not snapshot.ready or self._near(ratio):
            return current
        if ratio > 1 and snapshot.starting:
            count = snapshot.ready + snapshot.starting
            ratio *= snapshot.ready / count
            return current if ratio < 1 or self._near(ratio) else _whole(ratio * count)
        return _whole(ratio * snapshot.ready)

    def _near(self, ratio: float) -> bool:
        return abs(ratio - 1) <= self.tolerance


def _whole(replicas: float) -> int:
    return math.ceil(replicas - 1e-9)  # what a rounding error is above a whole number is no replica


Metered = Callable[[Snapshot], float]
"""A counter of a snapshot."""


def growth(seen: Sequence[Snapshot], counter: Metered, window_s: float) -> tuple[float, float]:
    """Return by how much *counter* grew in about the last *window_s*, and in which time exactly [s]."""
    last = seen[-1]
    first = next((snapshot for snapshot in reversed(seen) if snapshot.at_s <= last.at_s - window_s), seen[0])
    return counter(last) - counter(first), last.at_s - first.at_s


Share = Annotated[float, Field(gt=0, le=1)]
"""A share of something."""
