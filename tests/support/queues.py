"""Waiting times by queueing theory and in simulation; service takes 1 s on average, *load* is that of each server."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import optimize, stats
from serving import Ask, Case, serve

from sim.cost import Affine
from sim.metrics.rows import RequestRows
from sim.router import Router
from sim.scheduler.chunked_prefill import ChunkedPrefill

ONE_AT_A_TIME = ChunkedPrefill(max_num_seqs=1, max_num_batched_tokens=2**20)
TOKENS = 1000  # mean prompt, which takes 1 s


def m_m_1(load: float) -> float:
    """M/M/1, and so each of any number of servers among which a Poisson process is split at random."""
    return load / (1 - load)


def m_d_1(load: float) -> float:
    """M/D/1 (Pollaczek-Khinchine)."""
    return load / (2 * (1 - load))


def m_m_c(load: float, servers: int) -> float:
    """M/M/c with one queue for all (Erlang C); no way to choose a server when a request comes is better."""
    offered = load * servers
    blocked = 1.0
    for place in range(1, servers + 1):
        blocked = offered * blocked / (place + offered * blocked)
    waits = blocked / (1 - load * (1 - blocked))
    return waits / (servers * (1 - load))


def m_d_c(load: float, servers: int) -> float:
    """M/D/c: C. D. Crommelin, "Delay probability formulae", P.O.E.E. Journal 26 (1934); the mean by Pollaczek's series.

    With equal services first come first served, each server has every c-th request: this is round robin as well.
    """
    offered, total = load * servers, 0.0
    for turn in range(1, 10_000):
        arrivals = stats.poisson(turn * offered)
        term = arrivals.sf(turn * servers - 1) - servers / offered * arrivals.sf(turn * servers)
        total += term
        if term < 1e-12:
            break
    return total


def round_robin_m(load: float, servers: int) -> float:
    """E_c/M/1, which each server is when exponential services take turns: W = s / (1 - s), s = A*(1 - s)."""
    offered = load * servers

    def root(s: float) -> float:
        return (offered / (offered + 1 - s)) ** servers - s

    s = optimize.brentq(root, 0.0, 1 - 1e-9)
    return s / (1 - s)


def shortest_of_two(load: float, longest: int = 50) -> float:
    """Join the shorter of two exponential servers, the Markov chain of both queues solved, up to *longest* in each."""
    states = {(i, j): place for place, (i, j) in enumerate((i, j) for j in range(longest + 1) for i in range(j + 1))}
    rates = np.zeros((len(states), len(states)))
    for (i, j), place in states.items():
        for (new_i, new_j), rate in _moves(i, j, 2 * load):
            if max(new_i, new_j) <= longest:
                rates[place, states[min(new_i, new_j), max(new_i, new_j)]] += rate
    balance = (rates - np.diag(rates.sum(axis=1))).T
    balance[0] = 1.0
    shares = np.linalg.solve(balance, np.eye(len(states))[0])
    present = sum(share * (i + j) for (i, j), share in zip(states, shares, strict=True))
    return float(present) / (2 * load) - 1


def _moves(i: int, j: int, arrivals: float) -> list[tuple[tuple[int, int], float]]:
    """Return where the chain goes from *i* and *j* >= *i* requests, and how fast."""
    moves = [((i + 1, j), arrivals)]
    moves += [((i - 1, j), 1.0)] if i else []
    moves += [((i, j - 1), 1.0)] if j else []
    return moves


def shortest_of_d(load: float, requests: int, choices: int = 2) -> float:
    """Share of servers with at least *requests* requests when each joins the shortest of some drawn at random.

    In the limit of many servers: N. Vvedenskaya et al. (1996); M. Mitzenmacher, IEEE TPDS 12 (2001), section 3.
    """
    return load ** ((choices**requests - 1) / (choices - 1))


def served(router: Router, servers: int, load: float, requests: int, seed: int, *, exponential: bool) -> RequestRows:
    """Serve Poisson arrivals with service times of 1 s, exponential or all equal."""
    draw = np.random.default_rng(seed)
    arrivals_s = np.cumsum(draw.exponential(1 / (servers * load), requests)).tolist()
    tokens = np.ceil(draw.exponential(TOKENS, requests)) if exponential else np.full(requests, TOKENS)
    asks = tuple(Ask(at_s, int(prompt), 1) for at_s, prompt in zip(arrivals_s, tokens, strict=True))
    cost = Affine(per_token_s=1 / (TOKENS + 0.5 * exponential))  # rounding up adds half a token on average
    case = Case(ONE_AT_A_TIME, 2**20, 16, asks)
    return RequestRows.of(serve(case, replicas=servers, router=router, cost=cost.build(), seed=seed)[0])


def interval(figures: Sequence[float]) -> tuple[float, float]:
    """Return the 99 % confidence interval of the mean of independent replications."""
    half = stats.t.ppf(0.995, len(figures) - 1) * np.std(figures, ddof=1) / np.sqrt(len(figures))
    return np.mean(figures) - half, np.mean(figures) + half


def tail(rows: RequestRows, servers: int, since_s: float) -> list[float]:
    """Return the share of the servers with at least 1, 2, ... requests, on average over the time from *since_s* on."""
    until_s = rows.arrival_s[-1]
    found = np.zeros(12)
    for server in range(servers):
        own = rows.replica == server
        times = np.concatenate([rows.arrival_s[own], rows.last_token_s[own]])
        order = np.argsort(times, kind="stable")
        present = np.cumsum(np.repeat([1, -1], own.sum())[order])
        edges = np.clip(np.append(times[order], until_s), since_s, until_s)
        for count in range(1, len(found) + 1):
            found[count - 1] += np.diff(edges)[present >= count].sum()
    return (found / (servers * (until_s - since_s))).tolist()
