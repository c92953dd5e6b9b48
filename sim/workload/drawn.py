"""Requests of a long run, each of which exists only from when it is sent until it has ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from struct import Struct
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sim.request import Request, Status

__all__ = ["Drawn"]

_CODES = {
    **dict.fromkeys(("arrival_s", "admitted_s", "first_token_s", "last_token_s", "discarded_s"), "d"),
    **dict.fromkeys(("input_tokens", "output_tokens", "emitted_tokens", "cached_tokens"), "i"),
    "lost_tokens": "q",
    **dict.fromkeys(("replica", "preemptions", "retries"), "i"),
    "service": "h",
    "status": "b",
}
_CELLS = np.dtype(list(_CODES.items()))
_pack_into = Struct("=" + "".join(_CODES.values())).pack_into
_values_of = attrgetter(*_CODES)
_READ = 256  # rows at a time: one by one they take as long as the request
_MOST_TOKENS = np.iinfo(np.int32).max


class Drawn(Sequence[Request]):
    """Requests made from columns when they are asked for, and written back as rows (73 bytes) when they have ended.

    So a request has no memory of what was done to another copy of it. Only what `cells` has is kept.

    Parameters
    ----------
    arrival_s
        When they are sent, rising [s].
    input_tokens, output_tokens
        Their lengths [tokens].

    Attributes
    ----------
    reasons
        Why those were rejected or failed who were, by place.
    """

    def __init__(self, arrival_s: Any, input_tokens: Any, output_tokens: Any) -> None:
        self._cells = np.zeros(len(arrival_s), dtype=_CELLS)
        given = {"arrival_s": arrival_s, "input_tokens": input_tokens, "output_tokens": output_tokens}
        for name, column in given.items():
            self._cells[name] = column
        self._buffer = memoryview(self._cells).cast("B")  # type: ignore[arg-type]
        self._unfinished: list[Request] = []
        self.reasons: dict[int, str] = {}

    @staticmethod
    def can_hold(*lengths: Any) -> bool:
        """Tell whether all *lengths* fit the cells."""
        return all(np.max(column) <= _MOST_TOKENS for column in lengths)

    def __len__(self) -> int:
        return len(self._cells)

    @overload
    def __getitem__(self, index: int) -> Request: ...
    @overload
    def __getitem__(self, index: slice) -> list[Request]: ...
    def __getitem__(self, index: int | slice) -> Request | list[Request]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        cell = self._cells[index]
        lengths = int(cell["input_tokens"]), int(cell["output_tokens"])
        return Request(range(len(self))[index], *lengths, float(cell["arrival_s"]), service=int(cell["service"]))

    def __iter__(self) -> Iterator[Request]:
        for begin in range(0, len(self), _READ):
            cells = self._cells[begin : begin + _READ]
            names = "input_tokens", "output_tokens", "arrival_s", "service"
            rows = zip(*[cells[name].tolist() for name in names], strict=True)
            for index, (input_tokens, output_tokens, arrival_s, service) in enumerate(rows, begin):
                yield Request(index, input_tokens, output_tokens, arrival_s, service=service)

    @property
    def arrival_s(self) -> NDArray[np.float64]:
        """When each is sent [s]."""
        return np.array(self._cells["arrival_s"])

    @property
    def total_tokens(self) -> NDArray[np.int64]:
        """Prompt and answer of each together [tokens]."""
        tokens: NDArray[np.int64] = np.add(self._cells["input_tokens"], self._cells["output_tokens"], dtype=np.int64)
        return tokens

    def serve(self, services: NDArray[np.int64]) -> None:
        """Let each request ask for its service."""
        self._cells["service"] = services

    def ended(self, request: Request) -> None:
        """Write *request* down; one that was given up may still be in an iteration, so it is written at last."""
        if request.status is Status.COMPLETED:
            self._write(request)
        else:
            self._unfinished.append(request)

    def cells(self) -> NDArray[np.void]:
        """Return the rows of all requests, once they have ended."""
        for request in self._unfinished:
            self._write(request)
            self.reasons[request.index] = request.reason
        self._unfinished.clear()
        return self._cells

    def _write(self, request: Request) -> None:
        _pack_into(self._buffer, request.index * _CELLS.itemsize, *_values_of(request))
