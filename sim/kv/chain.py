"""A prompt's content as a chain of block keys.

The content of the first *e* tokens of a prompt is given by the lengths and names of the segments before token
*e - 1* and by the name of the segment that holds it. So the key of a block is that chain of segments,
interned as an integer, and the block's place: equal keys mean equal content up to the block's end, as with
the chained block hashes of vLLM.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sim.request import Request

__all__ = ["Chain", "ChainBook", "Run"]

_PLACES = 2**32  # more blocks than a prompt can have
_TAIL = "\0"  # no name of a segment


@dataclass(slots=True, eq=False)
class Run:
    """*count* keyed blocks from place *start* on that only one request can ever hit: its own tokens lie in them."""

    start: int
    count: int

    @property
    def stop(self) -> int:
        """The place after its last block."""
        return self.start + self.count


@dataclass(slots=True)
class Chain:
    """One request's blocks in the prefix cache.

    Attributes
    ----------
    shared
        Keys of the full blocks that lie in named segments, in order; those after them hold the request's own tokens.
    tail
        Key of the last, partly filled block of a prompt that lies in named segments to its end; None if there is none.
    keyed
        Full blocks that were hit or computed and offered to the cache since the admission.
    held
        Keys of shared blocks that this request uses, in order.
    private
        Keyed blocks after the shared ones that this request uses, by rising start.
    idle
        Private blocks that a preemption left in the cache, by rising start; an evicted run has no blocks any more.
    """

    shared: list[int]
    tail: int | None = None
    keyed: int = 0
    held: list[int] = field(default_factory=list)
    private: list[Run] = field(default_factory=list)
    idle: list[Run] = field(default_factory=list)

    def own_hits(self) -> int:
        """Return the idle private blocks that follow the shared ones without a hole."""
        place = len(self.shared)
        for run in self.idle:
            if run.count and run.start != place:
                break
            place += run.count
        return place - len(self.shared)

    def reuse_own(self, blocks: int) -> list[Run]:
        """Take the first *blocks* idle private blocks into use and return the runs that are used up."""
        emptied = []
        self._use(len(self.shared), len(self.shared) + blocks)
        self._drop_evicted()
        while blocks:
            run = self.idle[0]
            used = min(blocks, run.count)
            run.start, run.count, blocks = run.start + used, run.count - used, blocks - used
            if not run.count:
                emptied.append(self.idle.pop(0))
        return emptied

    def key_own(self, start: int, stop: int) -> None:
        """Key the private blocks from place *start* up to *stop*, but no duplicates of idle ones."""
        if self.idle:
            self._drop_evicted()
        for run in self.idle:
            self._use(start, min(run.start, stop))
            start = max(start, run.stop)
        self._use(start, stop)

    def retire(self) -> list[Run]:
        """Leave all private blocks idle and return their runs, the later first."""
        retired, self.private = self.private, []
        self.idle = sorted(self.idle + retired, key=lambda run: run.start) if self.idle else retired
        return retired[::-1]

    def _use(self, start: int, stop: int) -> None:
        if start >= stop:
            return
        if self.private and self.private[-1].stop == start:
            self.private[-1].count += stop - start
        else:
            self.private.append(Run(start, stop - start))

    def _drop_evicted(self) -> None:
        self.idle = [run for run in self.idle if run.count]


class ChainBook:
    """Interns chains of segments as integers, so that equal prefixes get equal keys."""

    def __init__(self, block_size: int, *, generated: bool, partial: bool = False) -> None:
        self._block_size, self._generated, self._partial = block_size, generated, partial
        self._ids: dict[tuple[int, int, str], int] = {}

    def chain(self, request: Request) -> Chain:
        """Return the chain of *request*: its prompt, and its answer too where generated blocks are keyed."""
        keys: list[int] = []
        if not request.segments:
            return Chain(keys)
        tail = None
        parent, length, start = 0, 0, 0
        for name, tokens in self._segments(request):
            parent = self._ids.setdefault((parent, length, name), len(self._ids) + 1)
            length, start = tokens, start + tokens
            keys.extend(range(parent * _PLACES + len(keys), parent * _PLACES + start // self._block_size))
            if self._partial and start == request.input_tokens and start % self._block_size:
                tail = self._ids.setdefault((parent, length, _TAIL), len(self._ids) + 1) * _PLACES
        return Chain(keys, tail)

    def _segments(self, request: Request) -> list[tuple[str, int]]:
        segments = [segment for segment in request.segments if segment[1]]
        named = sum(tokens for _, tokens in segments)
        if self._generated and request.output_segment is not None and named == request.input_tokens:
            segments.append((request.output_segment, request.output_tokens))
        return segments
