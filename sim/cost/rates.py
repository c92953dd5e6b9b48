"""What kernels reach, as the operations take it: rates, and times that nothing hides."""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "DecodeRates",
    "ExpertRates",
    "Factors",
    "GemmRates",
    "LinkRates",
    "MemoryRates",
    "PrefillRates",
    "Protocol",
]


class Factors(NamedTuple):
    """What an engine's kernels reach relative to the calibrated ones; 1 without evidence."""

    compute: float = 1.0
    memory: float = 1.0
    launch: float = 1.0


class GemmRates(NamedTuple):
    """A matrix product: depth for one step along k, quantising for one input element [s]."""

    flops_per_s: float
    bytes_per_s: float
    depth_s: float
    prologue: float
    sharpness: float
    launch_s: float
    quantise_s: float
    weight_bytes: float


class DecodeRates(NamedTuple):
    """Decode attention: a tile is one KV head of one sequence [s], spread over all processors, as is a query head.

    *walk_s* is the way along one token of a sequence on one processor; *ramp* what a byte takes more, as a share, until
    *ramp_s* is lost by it.
    """

    flops_per_s: float
    bytes_per_s: float
    tile_s: float
    launch_s: float
    head_s: float = 0.0
    walk_s: float = 0.0
    ramp: float = 0.0
    ramp_s: float = 0.0


class PrefillRates(NamedTuple):
    """Prefill attention: tile and depth for 128 queries of a head, writing for one byte of new KV [s].

    *exponent* is the width whose arithmetic takes as long as the exponential of a query-key pair, *edge* the keys that
    a query computes in vain at each end of what it sees.
    """

    flops_per_s: float
    bytes_per_s: float
    depth_s: float
    tile_s: float
    sharpness: float
    launch_s: float
    write_s: float
    exponent: float = 0.0
    edge: float = 0.0


class ExpertRates(NamedTuple):
    """Grouped products: passes over one element of own rows, and of the rows of all ranks [s].

    *depth_columns* are the columns of a matrix that all processors together read before they are busy.
    """

    flops_per_s: float
    bytes_per_s: float
    sharpness: float
    launch_s: float
    row_s: float
    sort_s: float
    weight_bytes: float
    depth_columns: float
    expert_s: float
    spread_s: float
    routing_s: float


class Protocol(NamedTuple):
    """One algorithm of a collective, for messages below some size."""

    below_bytes: float
    bytes_per_s: float
    launch_s: float


class LinkRates(NamedTuple):
    """A collective over some number of ranks: its algorithms, for messages of growing size."""

    small: Protocol
    medium: Protocol
    large: Protocol


class MemoryRates(NamedTuple):
    """A kernel that only moves bytes."""

    bytes_per_s: float
    launch_s: float
