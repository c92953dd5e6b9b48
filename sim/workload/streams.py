"""Random numbers: one named stream for each purpose, all grown from the experiment's seed."""

from __future__ import annotations

import numpy as np

__all__ = ["stream"]


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Return the random stream of *seed* for *purpose*.

    Streams of different names are independent, and none depends on which others are used or in what order. So two
    experiments with one seed share the arrivals, even if they draw their lengths differently, and a sweep compares
    its configurations under the same traffic.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(purpose.encode())))
