"""A mix of traffic: classes of requests with their own lengths, urgency, objectives and tenants."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np
from pydantic import Field

from sim.request import Request
from sim.section import Section
from sim.slo import SLO
from sim.workload.lengths import AnyLengths, LengthPolicy
from sim.workload.streams import stream
from sim.workload.structured import StructuredOutput

__all__ = ["TrafficClass", "check_classes", "mark_classes", "mark_structured"]


class TrafficClass(Section):
    """One class of a workload."""

    name: str = Field(min_length=1, description="Its name; a trace's own classes are found by it.")
    share: float | None = Field(
        None, gt=0, le=1, description="Fraction of the requests, of sessions where there are; missing: as in the trace."
    )
    lengths: AnyLengths | None = Field(None, description="Missing: the workload's.")
    priority: int | None = Field(
        None, description="Lower is more urgent, for an order or admission by priority; missing: 0, or as in the trace."
    )
    tenant: str | None = Field(None, min_length=1, description="Who asks; missing: nobody, or as in the trace.")
    slo: SLO | None = Field(None, description="Its own objectives; missing: the experiment's.")
    structured_output: StructuredOutput | None = Field(None, description="Its own; missing: the workload's.")


def check_classes(classes: Sequence[TrafficClass], *, recorded: bool) -> None:
    """Raise a `ValueError` where *classes* make no mix; *recorded* traffic brings lengths, and perhaps classes."""
    names = [each.name for each in classes]
    if len(set(names)) < len(names):
        raise ValueError(f"two classes are called {max(names, key=names.count)!r}")
    shares = [each.share for each in classes if each.share is not None]
    if len(shares) < len(classes) and (shares or not recorded):
        raise ValueError("each of the classes needs a share of the requests")
    if shares and not 0.999 < sum(shares) < 1.001:
        raise ValueError(f"the shares of the classes sum to {sum(shares):g}, not to 1")
    if recorded and any(each.lengths is not None for each in classes):
        raise ValueError("lengths of classes must be left out, since these arrivals bring their own")


def mark_classes(classes: Sequence[TrafficClass], requests: Sequence[Request], seed: int, beside: Path) -> None:
    """Make each of the *requests* one of a class: drawn by shares, or the class that a trace says."""
    if classes and classes[0].share is not None:
        _draw(classes, requests, seed)
    for each in classes:
        members = [request for request in requests if request.traffic_class == each.name]
        for request in members:
            request.priority = request.priority if each.priority is None else each.priority
            request.tenant = request.tenant if each.tenant is None else each.tenant
        if each.lengths is not None and members:
            _draw_lengths(each.name, each.lengths, members, seed, beside)


def mark_structured(
    common: StructuredOutput | None, classes: Sequence[TrafficClass], requests: Sequence[Request], seed: int
) -> None:
    """Name the grammars of the *requests*: those of their class where it says so, else the *common* ones."""
    own = {each.name: each.structured_output for each in classes if each.structured_output is not None}
    if common is not None:
        common.mark([request for request in requests if request.traffic_class not in own], seed)
    for name, structured in own.items():
        structured.mark([request for request in requests if request.traffic_class == name], seed, name)


def _draw_lengths(name: str, lengths: LengthPolicy, members: Sequence[Request], seed: int, beside: Path) -> None:
    """Draw the lengths of a class from random streams of its own, so that classes do not resemble each other."""
    own_seed = int(stream(seed, f"class {name}").integers(2**63))
    input_tokens, output_tokens = (column.tolist() for column in lengths.draw(len(members), own_seed, beside))
    for place, request in enumerate(members):
        request.input_tokens, request.output_tokens = input_tokens[place], output_tokens[place]


def _draw(classes: Sequence[TrafficClass], requests: Sequence[Request], seed: int) -> None:
    """Name the class of each request; all turns of a session are of one class."""
    bounds = list(accumulate(each.share or 0.0 for each in classes))[:-1]
    places = np.searchsorted(bounds, stream(seed, "classes").random(len(requests)), side="right").tolist()
    of_session: dict[str, str] = {}
    for request, place in zip(requests, places, strict=True):
        name = classes[place].name
        if request.session_id is not None:
            name = of_session.setdefault(request.session_id, name)
        request.traffic_class = name
