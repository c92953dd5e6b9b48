"""Transfers of KV between replicas: raw rows, and what came of them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.metrics.latency import Sample, statistics_ms
from sim.metrics.ratio import ratio
from sim.units import GB

__all__ = ["TransferLog", "TransferRows"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TransferRows:
    """One row a transfer, in the order in which they began; times in seconds from the start."""

    request: Ints  # its place in the workload
    prefill_replica: Ints
    decode_replica: Ints
    prefilled_s: Floats  # when the prompt was computed
    begin_s: Floats  # when the link began with it; with overlap before the prompt was computed
    arrive_s: Floats
    moved_bytes: Floats

    @property
    def exposed_s(self) -> Floats:
        """What the request waited for its KV [s]: for blocks, for the link, and for the bytes."""
        return self.arrive_s - self.prefilled_s

    @property
    def times(self) -> Sample:
        """The distribution of that."""
        return Sample.of(self.exposed_s)

    @property
    def mean_wait_s(self) -> float:
        """Mean time from when the prompt is computed until the link begins [s]: for blocks, and for the link."""
        return ratio(float(np.maximum(self.begin_s - self.prefilled_s, 0.0).sum()), len(self.request))

    @property
    def total_bytes(self) -> float:
        """All that was moved [B]."""
        return float(self.moved_bytes.sum())

    def as_dict(self, link_utilization: float) -> dict[str, float]:
        """Return it under its public keys, with the *link_utilization* of the busiest pool."""
        return {
            "kv_transfers": len(self.request),
            **statistics_ms({"kv_transfer": self.times}),
            "mean_kv_transfer_wait_ms": 1e3 * self.mean_wait_s,
            "kv_transfer_gb": self.total_bytes / GB,
            "kv_link_utilization": link_utilization,
        }


_COLUMNS = tuple(TransferRows.__dataclass_fields__)
_INTS = ("request", "prefill_replica", "decode_replica")


@dataclass(slots=True)
class TransferLog:
    """Collects transfers as packed doubles."""

    _cells: array[float] = field(default_factory=lambda: array("d"))

    def add(self, row: tuple[float, ...]) -> None:
        """Append one *row*, its cells in the order of `TransferRows`."""
        self._cells.extend(row)

    def rows(self) -> TransferRows:
        """Return everything logged so far, in the order of logging."""
        table = np.frombuffer(self._cells, dtype=np.float64).reshape(-1, len(_COLUMNS))
        columns: dict[str, Any] = {
            name: table[:, place].astype(np.int64) if name in _INTS else table[:, place].copy()
            for place, name in enumerate(_COLUMNS)
        }
        return TransferRows(**columns)
