"""The traffic of an experiment: when requests come, how long they are, how many there are."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from sim.section import Section
from sim.workload.arrivals import AnyArrivals
from sim.workload.arrivals.base import DrawnArrivals, RecordedArrivals
from sim.workload.classes import TrafficClass, check_classes, mark_classes, mark_structured
from sim.workload.drawn import Drawn
from sim.workload.lengths import AnyLengths
from sim.workload.patience import Patience
from sim.workload.prefix import SharedPrefix
from sim.workload.structured import StructuredOutput
from sim.workload.traffic import MOST_REQUESTS, Traffic, requests_of

__all__ = ["DEFAULT_REQUESTS", "Workload", "generate"]

DEFAULT_REQUESTS = 1000
"""As many as ``vllm bench serve`` sends by default."""
_MANY = 100_000
"""From so many on, requests are not all made in advance."""


class Workload(Section):
    """Arrivals and lengths, chosen by ``kind``."""

    arrivals: AnyArrivals = Field(description="When requests are sent.")
    lengths: AnyLengths | None = Field(None, description="How long prompts and answers are; a trace brings its own.")
    num_requests: int | None = Field(
        None, ge=1, le=MOST_REQUESTS, description=f"Requests to send; missing: {DEFAULT_REQUESTS}, or the whole trace."
    )
    classes: tuple[TrafficClass, ...] = Field((), description="A mix of classes of requests, on the same arrivals.")
    shared_prefix: SharedPrefix | None = Field(None, description="A beginning that prompts have in common.")
    structured_output: StructuredOutput | None = Field(
        None, description="Answers follow a JSON schema or another grammar; missing: those of classes that say so."
    )
    patience: Patience | None = Field(None, description="Clients give requests up; missing: they wait for ever.")

    @property
    def structured(self) -> bool:
        """Whether any answer may follow a grammar."""
        own = (each.structured_output for each in self.classes)
        return any(each is not None for each in (self.structured_output, *own))

    @model_validator(mode="after")
    def _lengths_once(self) -> Self:
        recorded = isinstance(self.arrivals, RecordedArrivals)
        if recorded and self.lengths is not None:
            raise ValueError("lengths must be left out, since these arrivals bring their own")
        own_lengths = bool(self.classes) and all(each.lengths is not None for each in self.classes)
        if not recorded and self.lengths is None and not own_lengths:
            raise ValueError(
                "lengths is missing: write {kind: preset, name: chat} or"
                " {kind: fixed, input_tokens: 1024, output_tokens: 128}"
            )
        return self

    @property
    def unmarked(self) -> bool:
        """Whether requests are told apart by nothing but when they come and how long they are."""
        return not (self.classes or self.shared_prefix or self.structured or self.patience)

    @model_validator(mode="after")
    def _a_mix(self) -> Self:
        check_classes(self.classes, recorded=isinstance(self.arrivals, RecordedArrivals))
        return self


def generate(workload: Workload, seed: int, beside: Path) -> Traffic:
    """Draw the requests of *workload*.

    Parameters
    ----------
    workload
        What to draw.
    seed
        Not negative. Equal seeds give equal traffic; each purpose has a random stream of its own (`stream`).
    beside
        Folder of the experiment, to which the paths of traces and profiles are relative.

    Raises
    ------
    TraceError, ProfileError
        A trace or a workload profile cannot be used.
    """
    traffic = _traffic(workload, seed, beside)
    mark_classes(workload.classes, traffic.requests, seed, beside)
    if workload.shared_prefix is not None:
        workload.shared_prefix.mark(traffic.requests, seed)
    mark_structured(workload.structured_output, workload.classes, traffic.requests, seed)
    if workload.patience is not None:
        workload.patience.mark(traffic.requests, seed)
    return traffic


def _traffic(workload: Workload, seed: int, beside: Path) -> Traffic:
    match workload.arrivals:
        case RecordedArrivals() as recorded:
            return recorded.replay(workload.num_requests, seed, beside)
        case DrawnArrivals() as drawn:
            count = workload.num_requests or DEFAULT_REQUESTS
            schedule = drawn.schedule(count, seed, beside)
            ones = np.ones(count, dtype=np.int64)  # where every class has its own lengths
            lengths = (ones, ones) if workload.lengths is None else workload.lengths.draw(count, seed, beside)
            if count >= _MANY and workload.unmarked and schedule.slots_open_s is None and Drawn.can_hold(*lengths):
                return Traffic(Drawn(schedule.arrival_s, *lengths))
            requests = requests_of(schedule.arrival_s, *lengths)
            return Traffic(requests, schedule.slots_open_s, schedule.think_s)
    raise NotImplementedError(f"arrivals of class {type(workload.arrivals).__name__}")
