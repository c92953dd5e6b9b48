"""Conversations: every turn begins with all that was said before."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from sim.request import Request, Segment
from sim.units import Seconds
from sim.workload.arrivals.base import Rate, RecordedArrivals, poisson_s
from sim.workload.arrivals.shape import RateShape
from sim.workload.streams import stream
from sim.workload.traffic import Floats, Traffic

__all__ = ["SessionArrivals"]

_REQUESTS = 1000
"""As many as a workload has where nobody says."""


class SessionArrivals(RecordedArrivals):
    """Sessions that begin at random and go on for some turns, each sent a pause after the answer to the one before.

    As it is by default, people chat. An agent that calls tools has many turns, short pauses and long inputs (what a
    tool returns): ``{turns: 30, input_tokens: 1500, output_tokens: 150, think_s: 2}``. Retrieval adds *passages* to
    every turn, popular ones to many: ``{turns: 3, passages: 5, passage_tokens: 500}``. Numbers of turns are geometric,
    lengths and pauses exponential, all about their means.
    """

    kind: Literal["sessions"] = "sessions"
    rate: Rate = Field(description="Sessions that begin in a second, a Poisson process [requests/s].")
    turns: float = Field(5.0, ge=1, description="Mean turns of a session.")
    system_tokens: int = Field(500, ge=0, description="System prompt, the same in all sessions [tokens].")
    input_tokens: float = Field(120.0, ge=1, description="Mean new input of a turn [tokens].")
    output_tokens: float = Field(250.0, ge=1, description="Mean answer [tokens].")
    think_s: Seconds = Field(20.0, ge=0, description="Mean pause before a later turn [s].")
    passages: int = Field(0, ge=0, le=10_000, description="Retrieved passages that a turn brings along.")
    passage_tokens: int = Field(400, ge=1, description="Length of a passage [tokens].")
    corpus: int = Field(10_000, ge=1, le=10_000_000, description="Different passages; the n-th is as popular as 1/n.")
    shape: RateShape | None = Field(None, description="How the rate of sessions changes; missing: it does not.")
    max_context_tokens: int = Field(
        32_768, ge=1, description="A session ends before a turn and its answer that would exceed this [tokens]."
    )

    def replay(self, limit: int | None, seed: int, beside: Path) -> Traffic:
        """Return *limit* requests of as many sessions as it takes, by rising start of their sessions."""
        count = limit or _REQUESTS
        draw = stream(seed, "sessions")
        popularity = np.cumsum(1 / np.arange(1, self.corpus + 1)) if self.passages else np.empty(0)
        starts_s = self._starts_s(count, seed, beside).tolist()  # a session has at least one turn
        requests: list[Request] = []
        follow_ups: dict[int, Request] = {}
        for number, start_s in enumerate(starts_s):
            talk = _Talk(f"session {number}", [("system", self.system_tokens)])
            for turn in range(min(int(draw.geometric(1 / self.turns)), count - len(requests))):
                request = self._turn(len(requests), talk, turn, start_s, draw, popularity)
                if turn and request.total_tokens > self.max_context_tokens:
                    break
                if turn:
                    follow_ups[request.index - 1] = request
                requests.append(request)
            if len(requests) == count:
                break
        return Traffic(requests, follow_ups=follow_ups)

    def _starts_s(self, count: int, seed: int, beside: Path) -> Floats:
        if self.shape is None:
            return poisson_s(count, self.rate, seed)
        return self.shape.times_of(poisson_s(count, 1.0, seed), self.rate, beside)

    def _turn(
        self, index: int, talk: _Talk, turn: int, start_s: float, draw: np.random.Generator, popularity: np.ndarray
    ) -> Request:
        """Draw the next turn of *talk*, which remembers it."""
        if self.passages:
            found = np.searchsorted(popularity, draw.random(self.passages) * popularity[-1])
            talk.said += [(f"passage {place}", self.passage_tokens) for place in found.tolist()]
        talk.said.append((f"{talk.name}, input {turn}", _length(self.input_tokens, draw)))
        request = Request(
            index,
            sum(tokens for _, tokens in talk.said),
            _length(self.output_tokens, draw),
            start_s,
            segments=tuple(talk.said),
            output_segment=f"{talk.name}, answer {turn}",
            session_id=talk.name,
            turn=turn,
            think_s=float(draw.exponential(self.think_s)) if turn else 0.0,
        )
        talk.said.append((str(request.output_segment), request.output_tokens))
        return request


@dataclass(slots=True)
class _Talk:
    """A session and what has been said in it."""

    name: str
    said: list[Segment] = field(default_factory=list)


def _length(mean: float, draw: np.random.Generator) -> int:
    return 1 + round(float(draw.exponential(max(mean - 1, 0.0))))
