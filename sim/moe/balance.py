"""How evenly ranks are loaded, by the definitions in use.

All take the load of every rank, shape (layers, ranks). Those that return one number differ in how they average over
layers, and a mean of ratios is not a ratio of sums. A layer without load counts as balanced.
"""

from __future__ import annotations

import numpy as np

from sim.moe.expert_map import Floats

__all__ = ["balancedness_sglang", "balancedness_vllm", "imbalance", "max_over_mean", "top_share"]


def max_over_mean(rank_load: Floats) -> Floats:
    """Return for each layer the most loaded rank over the mean: 1 is balanced."""
    return _ratio(rank_load.max(axis=-1), rank_load.mean(axis=-1))


def imbalance(rank_load: Floats) -> float:
    """Return (max - mean) / mean, averaged over layers, as TensorRT-LLM reports it: 0 is balanced."""
    return float(np.mean(max_over_mean(rank_load) - 1.0))


def balancedness_sglang(rank_load: Floats) -> float:
    """Return mean / max of each layer, averaged over layers, as SGLang reports it: 1 is balanced."""
    return float(np.mean(1.0 / max_over_mean(rank_load)))


def balancedness_vllm(rank_load: Floats) -> float:
    """Return the sum of the layers' means over the sum of their maxima, as vLLM reports it: 1 is balanced."""
    maxima = rank_load.max(axis=-1).sum()
    return float(rank_load.mean(axis=-1).sum() / maxima) if maxima else 1.0


def top_share(loads: Floats, count: int) -> Floats:
    """Return for each layer the share of the *count* most popular experts, from shape (layers, experts)."""
    top = -np.sort(-loads, axis=-1)[:, :count].sum(axis=-1)
    return _ratio(top, loads.sum(axis=-1))


def _ratio(above: Floats, below: Floats) -> Floats:
    ratio: Floats = np.divide(above, below, out=np.ones_like(below), where=below > 0)
    return ratio
