"""How a load is written into an experiment, and how a slower machine is played by a faster load.

A machine on which everything takes s times as long, under requests that come at rate x, is the same machine at rate s x
seen on a clock that is s times slower: all latencies are s times those there. So the error of the model in speed needs
no constants to be changed; the run gets s times the rate, pauses of 1/s, and its latencies are multiplied by s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sim.experiment import Experiment
from sim.search import Users
from sim.sweep import Settings
from sim.workload import generate
from sim.workload.arrivals.base import RecordedArrivals
from sim.workload.workload import DEFAULT_REQUESTS

__all__ = ["Load", "Lengths", "Unit", "lengths_of", "load_of"]

Unit = Literal["rate", "concurrency", "users", "speed"]
"""Requests/s; requests in flight; people; a trace as recorded, times this factor."""

_WORDS: dict[Unit, str] = {
    "rate": "requests/s",
    "concurrency": "requests in flight",
    "users": "users",
    "speed": "times the recorded speed",
}
_FASTER = ("rate", "request_rate", "speedup")
_SHORTER = ("think_s", "ramp_s", "burst_s", "pause_s")
_TURNS = 6  # requests of each user of a closed loop


@dataclass(frozen=True, slots=True)
class Lengths:
    """Prompts and answers of the workload: means, percentiles asked for later, and whether prompts share anything."""

    input_tokens: np.ndarray
    output_tokens: np.ndarray
    shared: bool

    @property
    def mean_input(self) -> float:
        """Mean prompt [tokens]."""
        return float(self.input_tokens.mean())

    @property
    def mean_output(self) -> float:
        """Mean answer [tokens]."""
        return float(self.output_tokens.mean())


def lengths_of(experiment: Experiment) -> Lengths:
    """Return the lengths of the workload's requests, the same for every load."""
    requests = generate(experiment.workload, experiment.seed, experiment.folder).requests
    return Lengths(
        np.array([request.input_tokens for request in requests]),
        np.array([request.output_tokens for request in requests]),
        any(request.segments for request in requests),
    )


@dataclass(frozen=True, slots=True)
class Load:
    """A kind of load and the amount of it that the experiment has.

    Attributes
    ----------
    amount
        As the experiment has it: the mean load.
    peak
        What the SLO must hold for.
    arrivals
        The workload's arrivals as plain data, which the load is written into.
    users
        Where people are counted.
    cycle_s
        About the time from one request of a user to the next, over which users begin [s].
    requests
        Fewest requests of a run.
    """

    unit: Unit
    amount: float
    peak: float
    arrivals: dict[str, Any]
    users: Users | None
    cycle_s: float
    requests: int

    @property
    def whole(self) -> bool:
        """Amounts are counts."""
        return self.unit in ("concurrency", "users")

    @property
    def words(self) -> str:
        """The unit for people: of users who pause, not all have a request in flight."""
        pausing = self.unit == "concurrency" and self.arrivals.get("think_s")
        return _WORDS["users" if pausing else self.unit]

    def settings(self, amount: float, slower: float = 1.0) -> Settings:
        """Return the settings by dotted path for *amount* of the load, on a machine that is *slower* by this factor."""
        arrivals, requests = self._with(amount)
        return {"workload.arrivals": _dilated(arrivals, slower), "workload.num_requests": requests}

    def _with(self, amount: float) -> tuple[dict[str, Any], int | None]:
        match self.unit:
            case "rate" | "speed":
                name = "rate" if self.unit == "rate" else "speedup"
                return {**self.arrivals, name: amount}, self.requests or None
            case "concurrency":
                concurrency = max(1, round(amount))
                ramp = {"ramp_s": self.arrivals.get("ramp_s") or self.cycle_s}
                arrivals = {**self.arrivals, "concurrency": concurrency, **ramp}
            case "users":
                assert self.users is not None
                concurrency = max(1, round(amount * self.users.active_share))
                think = {"think_s": self.users.think_s, "think_distribution": "exponential"}
                arrivals = {"kind": "closed_loop", "concurrency": concurrency, **think, "ramp_s": self.cycle_s}
        return arrivals, max(self.requests, _TURNS * concurrency)

    def per_second(self, amount: float, e2e_s: float) -> float:
        """Return the requests/s of *amount* when an answer takes *e2e_s*."""
        if self.unit == "rate":
            return amount * float(self.arrivals.get("turns", 1.0))
        if self.unit == "speed":
            return math.nan
        pause_s = self.users.think_s if self.users else float(self.arrivals.get("think_s", 0.0))
        users = amount * (self.users.active_share if self.users else 1.0)
        return users / (e2e_s + pause_s)


def _dilated(arrivals: dict[str, Any], slower: float) -> dict[str, Any]:
    faster = {name: arrivals[name] * slower for name in _FASTER if arrivals.get(name)}
    shorter = {name: arrivals[name] / slower for name in _SHORTER if arrivals.get(name)}
    return arrivals if slower == 1.0 else {**arrivals, **faster, **shorter}


def load_of(
    experiment: Experiment, unit: Unit | None, users: Users | None, peak_factor: float, lengths: Lengths
) -> Load:
    """Return the load of *experiment*, counted in *unit* (missing: whatever its arrivals have).

    Raises
    ------
    ConfigError
        The workload has no such load.
    """
    given = experiment.workload.arrivals
    arrivals = given.model_dump(mode="json", exclude_unset=True) | {"kind": given.kind}
    unit = unit or ("users" if users else _unit_of(arrivals))
    if unit == "users" and users is None:
        raise experiment.error("search.users", "missing: write such as users: {population: 200, think_s: 20 s}")
    if unit is None or (unit == "rate" and "rate" not in type(given).model_fields):
        raise experiment.error("workload.arrivals.kind", f"{given.kind} has no load that could be more or less")
    if unit == "concurrency" and given.kind != "closed_loop":
        arrivals = {"kind": "closed_loop", "concurrency": 1}
    amount = float(users.population) if unit == "users" and users else float(arrivals.get(_FIELD[unit]) or 1.0)
    peak = float(users.burst or users.population) if unit == "users" and users else amount
    requests = experiment.workload.num_requests or (0 if isinstance(given, RecordedArrivals) else DEFAULT_REQUESTS)
    pause_s = users.think_s if users else float(arrivals.get("think_s", 0.0))
    cycle_s = pause_s + _answer_s(experiment, lengths)
    return Load(unit, amount, peak * peak_factor, arrivals, users, cycle_s, requests)


_FIELD = {"rate": "rate", "concurrency": "concurrency", "speed": "speedup", "users": "concurrency"}


def _unit_of(arrivals: dict[str, Any]) -> Unit | None:
    if "concurrency" in arrivals:
        return "concurrency"
    if "rate" in arrivals:
        return "rate"
    return "speed" if arrivals["kind"] == "trace" else None


def _answer_s(experiment: Experiment, lengths: Lengths) -> float:
    """Return how long an answer may take by the SLO, or about how long it takes [s]."""
    bounds_s = {clause.latency: clause.bound_s for clause in (experiment.slo.clauses if experiment.slo else ())}
    token_s = bounds_s.get("tpot", bounds_s.get("itl", 0.03))
    return bounds_s.get("e2el", bounds_s.get("ttft", 1.0) + lengths.mean_output * token_s)
