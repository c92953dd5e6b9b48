"""How many rows and experts the measured rank had in the tables of grouped products: as their benchmark routes them.

aiconfigurator's collectors give a router the experts that each token should choose, and time the first rank.
"""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.moe.popularity.power_law import PowerLaw, inverted

__all__ = ["ROUTED", "FirstRank", "first_rank", "first_ranks"]

Integers = NDArray[np.int64]

ROUTED = ("num_experts", "topk", "num_tokens", "moe_ep_size")
"""Columns by which a benchmark's routing is known, beside whether it is `grouped` (`first_rank`)."""
_DRAWS = 60
_GROUPS, _GROUP_LIMIT = 8, 4
_GROUPED_DRAWS, _GROUPED_TOKENS = 6, 2048
"""Where every token passes the router with groups, so few draws of so many tokens at most."""


class FirstRank(NamedTuple):
    """What the rank that is measured has.

    Attributes
    ----------
    touched
        Its experts that any token chose, at least 1.
    crowding
        Its rows over the mean of all ranks.
    """

    touched: float
    crowding: float


@functools.cache
def first_rank(
    experts: int, top_k: int, tokens: int, ranks: int, alpha: float | None = None, *, grouped: bool = False
) -> FirstRank:
    """Return the load of the first of *ranks* by *tokens* of all: balanced, or under a power law of exponent *alpha*.

    *grouped*: the choices pass the router of DeepSeek-V3, which keeps a token within 4 of 8 groups. The asked-for
    experts all score alike, so choices are lost with their groups, and ties fall to the first experts there.
    """
    if alpha is None:
        found = [_counts(_stepped(experts, top_k, tokens), experts, top_k, grouped=grouped)]
    else:
        random, some = np.random.default_rng(experts + ranks), min(tokens, _GROUPED_TOKENS) if grouped else tokens
        parts = _parts(experts, top_k, tokens, alpha, _GROUPED_DRAWS if grouped else _DRAWS, random)
        asked = [_busiest_first(_whole(part * (some * top_k / part.sum()), some, ranks), ranks) for part in parts]
        found = [_counts(_filled(each, top_k), experts, top_k, grouped=True) for each in asked] if grouped else asked
    here = np.array(found)[:, : experts // ranks]
    crowding = here.sum(axis=1) * ranks / np.sum(found, axis=1)
    return FirstRank(max(1.0, float((here > 0).sum(axis=1).mean())), float(crowding.mean()))


def first_ranks(rows: pd.DataFrame, alpha: float | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what is touched and the crowding, shape (rows,) each, by the columns of `ROUTED` and `grouped`."""
    keys = zip(*(rows[name].tolist() for name in (*ROUTED, "grouped")), strict=True)
    found = [first_rank(*key, alpha, grouped=grouped) for *key, grouped in keys]
    touched, crowding = np.array(found, dtype=np.float64).reshape(-1, 2).T
    return touched, crowding


def _stepped(experts: int, top_k: int, tokens: int) -> Integers:
    """Return the balanced choices, shape (tokens, top_k) (``balanced_logits``).

    Each token takes the next expert, and those a stride further; fewer tokens than a stride are spread over it.
    """
    stride = -(-experts // top_k)
    first = np.arange(tokens) * max(1.0, stride / tokens)
    return (first[:, None] + np.arange(top_k) * stride).astype(np.int64) % experts


def _parts(
    experts: int, top_k: int, tokens: int, alpha: float, draws: int, random: np.random.Generator
) -> NDArray[np.float64]:
    """Return each expert's part of the choices, shape (draws, experts).

    Between 1 and 0.8 times the tokens (`PowerLaw`); of fewer choices than experts, between 0.01 and 2.
    """
    if tokens * top_k > experts:
        return PowerLaw(alpha=alpha, tokens=max(tokens, 2)).draw(draws, experts, random)
    return inverted(random.random((draws, experts)), alpha, 0.01, 2.0)


def _whole(wanted: NDArray[np.float64], most: int, ranks: int) -> Integers:
    """Return *wanted* in whole numbers of the same sum, at most *most* each.

    What is missing goes to the least loaded expert of one rank after the other, what is too much comes from the most
    loaded.
    """
    counts = np.minimum(np.rint(wanted), most).astype(np.int64).reshape(ranks, -1)
    missing = round(float(wanted.sum())) - int(counts.sum())
    step = 1 if missing > 0 else -1
    for rank in itertools.cycle(counts):
        if not missing:
            break
        chosen = rank.argmin() if step > 0 else rank.argmax()
        if 0 <= rank[chosen] + step <= most:
            rank[chosen] += step
            missing -= step
    return counts.ravel()


def _busiest_first(counts: Integers, ranks: int) -> Integers:
    by_rank = counts.reshape(ranks, -1).copy()
    busiest = by_rank.sum(axis=1).argmax()
    by_rank[[0, busiest]] = by_rank[[busiest, 0]]
    return by_rank.ravel()


def _filled(counts: Integers, top_k: int) -> Integers:
    """Return choices with these *counts*, shape (tokens, top_k): the most loaded expert's tokens first, and so on."""
    order = np.argsort(-counts, kind="stable")
    return np.repeat(order, counts[order]).reshape(top_k, -1).T


def _counts(chosen: Integers, experts: int, top_k: int, *, grouped: bool) -> Integers:
    """Return the tokens of each expert that *chosen* leads to, shape (experts,)."""
    if not grouped:
        return np.bincount(chosen.ravel(), minlength=experts)
    asked = np.zeros((len(chosen), experts), dtype=np.bool_)
    np.put_along_axis(asked, chosen, values=True, axis=1)
    scores = np.minimum(asked.reshape(len(chosen), _GROUPS, -1).sum(axis=2), 2)  # a group counts its best two
    groups = np.argsort(-scores, axis=1, kind="stable")[:, :_GROUP_LIMIT]
    allowed = np.zeros((len(chosen), _GROUPS), dtype=np.bool_)
    np.put_along_axis(allowed, groups, values=True, axis=1)
    worth = np.repeat(allowed, experts // _GROUPS, axis=1) * (1 + asked.astype(np.int8))
    taken = np.argsort(-worth, axis=1, kind="stable")[:, :top_k]
    return np.bincount(taken.ravel(), minlength=experts)
