"""Sessions of a coding agent, recorded with the block hashes of every prompt.

Source: github.com/callanjfox/kv-cache-tester, Claude Code traces. Times count from the start of a session, so that all
sessions begin at once unless `arrivals.rate` spreads them. A subagent is a session of its own, which begins at its
recorded time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from sim.workload.traces.blocks import BlockAdapter
from sim.workload.traces.row import Record, TraceRow, number, text, whole

__all__ = ["ClaudeCode"]


class ClaudeCode(BlockAdapter):
    """One session a line: ``{"id", "block_size", "requests": [{"t", "in", "out", "hash_ids", "think_time"}, ...]}``."""

    name: ClassVar[str] = "claude_code"
    columns: ClassVar[frozenset[str]] = frozenset({"id", "block_size", "requests"})

    by_time: ClassVar[bool] = False

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the requests of one session and of its subagents."""
        name = text(record, "id") or ""
        scope = "" if record.get("hash_id_scope") == "global" else name
        yield from self._session(name, record, 0.0, scope, whole(record, "block_size"))

    def _session(self, name: str, record: Record, start_s: float, scope: str, block_tokens: int) -> Iterator[TraceRow]:
        turn = 0
        for place, request in enumerate(_requests(record)):
            sent_s = start_s + number(request, "t")
            if "requests" in request:
                yield from self._session(f"{name}/{place}", request, sent_s, scope, block_tokens)
                continue
            input_tokens = whole(request, "in")
            self.note_blocks(request, block_tokens, input_tokens, scope)
            yield TraceRow(
                sent_s,
                input_tokens,
                whole(request, "out"),
                session_id=name,
                turn=turn,
                think_s=number(request, "think_time") if turn and request.get("think_time") is not None else None,
                traffic_class=text(request, "model") or "",
            )
            turn += 1


def _requests(record: Record) -> list[Mapping[str, Any]]:
    requests = record.get("requests")
    if not isinstance(requests, list) or not all(isinstance(request, dict) for request in requests):
        raise ValueError("requests is not a list of objects")
    return requests
