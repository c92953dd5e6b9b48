"""One request: what was asked, and what has become of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = ["Request", "Segment", "Status"]

Segment = tuple[str, int]
"""A named piece of a prompt and its length [tokens]; equal names mean equal content."""


class Status(IntEnum):
    """Where a request is in its life."""

    WAITING = 0
    RUNNING = 1
    COMPLETED = 2
    REJECTED = 3
    FAILED = 4


@dataclass(slots=True, eq=False)
class Request:
    """A request and its progress.

    Attributes
    ----------
    index
        Place in the workload, from 0; breaks ties of equal arrival times.
    input_tokens, output_tokens
        Length of the prompt and of the answer [tokens], each at least 1.
    arrival_s
        When the client sends it [s from the start]. A closed loop sets it when the request is sent.
    segments
        Pieces of the prompt in order; requests that start with the same pieces share that prefix.
    output_segment
        Name of the answer, by which a later prompt may contain it.
    session_id, turn, think_s
        A later turn of a session is sent *think_s* after the turn before it has finished.
    priority
        Who is served first where the scheduler's order is by priority: the lower value.
    traffic_class, tenant
        What kind of request it is, and who asks: for figures, and for an admission policy.
    schema
        Name of the grammar that its answer follows; empty: none.
    patience_s
        How long after its arrival its client gives it up, if it is not answered in full by then [s].
    service
        Number of the model that it asks for, where several are served.
    retries, lost_tokens, discarded_s
        How often its replica was lost; the tokens whose KV was in the cache then, prefix hits included; and the time
        from first to last token of the answers that it began and that its client threw away [s].
    remote_tokens
        Tokens of its prompt whose KV comes from another replica, once there are blocks for it; 0: none.
    computed_tokens
        Tokens whose KV is in the cache: 0 when waiting, growing while running. Stands still inside a decode stride.
    emitted_tokens
        Output tokens emitted so far; survives a preemption.
    cached_tokens
        Prefix-cache hits summed over all admissions [tokens].
    expected_hit_tokens
        Tokens of its prompt that its router took to be cached at the replica [tokens].
    queued_s
        When the engine first sees it [s]: its arrival, later by what the router takes, and by what the server spends on
        HTTP and tokenisation.
    admitted_s, first_token_s, last_token_s
        First admission, first and last emission [s], `nan` until they happen.
    admission
        Its number among the admissions of its replica; the last admitted is the first preempted.
    rejected_tokens
        Slots of the KV cache that it holds beyond its computed tokens: those of rejected drafts.
    swapped_blocks
        Blocks of the host's memory that hold its KV while it waits; its computed tokens then are not 0.
    verifications
        Drafts of it that were verified before it last began to decode.
    decode_offset
        While it decodes, its computed tokens minus the replica's count of decode iterations: a constant.
    decode_ticket
        Counts how often it has begun or stopped to decode, so that what was noted for later is known to be stale; odd
        while it decodes.
    """

    index: int
    input_tokens: int
    output_tokens: int
    arrival_s: float = 0.0
    request_id: str = ""
    segments: tuple[Segment, ...] = ()
    output_segment: str | None = None
    session_id: str | None = None
    turn: int = 0
    think_s: float = 0.0
    priority: int = 0
    traffic_class: str = ""
    tenant: str = ""
    schema: str = ""
    patience_s: float = float("inf")

    service: int = 0

    status: Status = Status.WAITING
    reason: str = ""
    replica: int = -1
    remote_tokens: int = 0
    expected_hit_tokens: int = 0
    computed_tokens: int = 0
    emitted_tokens: int = 0
    cached_tokens: int = 0
    preemptions: int = 0
    retries: int = 0
    lost_tokens: int = 0
    discarded_s: float = 0.0
    queued_s: float = float("nan")
    admitted_s: float = float("nan")
    first_token_s: float = float("nan")
    last_token_s: float = float("nan")
    admission: int = -1
    rejected_tokens: int = 0
    swapped_blocks: int = 0
    verifications: int = 0
    decode_offset: int = 0
    decode_ticket: int = 0

    @property
    def prefill_tokens(self) -> int:
        """Tokens to compute before the next emission: the prompt, and after a preemption what was emitted, too."""
        return self.input_tokens + self.emitted_tokens

    @property
    def total_tokens(self) -> int:
        """Prompt and answer together [tokens]."""
        return self.input_tokens + self.output_tokens
