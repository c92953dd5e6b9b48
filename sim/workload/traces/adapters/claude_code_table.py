"""Sessions of a coding agent as a table: no hashes, but how much of each prompt its session had seen before.

Source: computed from the traces of github.com/callanjfox/kv-cache-tester (see `claude_code`), one row a request in the
order of its session, with the rows of a subagent where it was started.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from sim.request import Segment
from sim.workload.traces.adapter import Adapter
from sim.workload.traces.pieces import aligned, grown
from sim.workload.traces.row import Record, TraceRow, number, text, whole

__all__ = ["ClaudeCodeTable"]

_SEEN = "prefix_hit_tokens_block64_local"


@dataclass(slots=True)
class _Agent:
    """A session, or a subagent of it."""

    name: str
    start_s: float
    turns: int = 0
    sent_s: float = 0.0  # of the last request, from the agent's start
    prompt: tuple[Segment, ...] = ()
    prompt_tokens: int = 0


class ClaudeCodeTable(Adapter):
    """``trace_id,subagent_depth,t_s,input_tokens,output_tokens,prefix_hit_tokens_block64_local,...,think_time_s,...``."""

    name: ClassVar[str] = "claude_code_table"
    columns: ClassVar[frozenset[str]] = frozenset(
        {"trace_id", "subagent_depth", "t_s", "input_tokens", "output_tokens", _SEEN}
    )

    by_time: ClassVar[bool] = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._session = ""
        self._agents: list[_Agent] = []  # the session and the subagents that it is in
        self._longest = _Agent("", 0.0)  # whoever sent the longest prompt of the session
        self._subagents = 0

    def rows(self, record: Record) -> Iterable[TraceRow]:
        """Yield the one request of *record*."""
        agent = self._agent(record)
        agent.sent_s = number(record, "t_s")
        input_tokens, seen_tokens = whole(record, "input_tokens"), whole(record, _SEEN)
        # What this agent sent last is what it extends, but for the few prompts that go back to an older, longer one.
        base = agent if agent.prompt_tokens >= seen_tokens else self._longest
        agent.prompt = grown(base.prompt, seen_tokens, f"{agent.name}/{agent.turns}", input_tokens)
        agent.prompt_tokens = input_tokens
        if input_tokens > self._longest.prompt_tokens:
            self._longest = _Agent(agent.name, 0.0, prompt=agent.prompt, prompt_tokens=input_tokens)
        yield TraceRow(
            agent.start_s + agent.sent_s,
            input_tokens,
            whole(record, "output_tokens"),
            segments=agent.prompt,
            session_id=agent.name,
            turn=agent.turns,
            think_s=number(record, "think_time_s") if agent.turns and record.get("think_time_s") is not None else None,
        )
        agent.turns += 1

    def finish(self, rows: list[TraceRow]) -> Iterable[str]:
        """Cut the pieces so that shared ones are equal as a whole."""
        for row, pieces in zip(rows, aligned([row.segments for row in rows]), strict=True):
            row.segments = pieces
        return ()

    def _agent(self, record: Record) -> _Agent:
        """Return who sends the request; a clock that is set back marks another subagent."""
        session, depth = text(record, "trace_id") or "", whole(record, "subagent_depth")
        if session != self._session or not self._agents:
            self._session, self._agents, self._longest = session, [_Agent(session, 0.0)], _Agent("", 0.0)
            self._subagents = 0
        if not 0 <= depth <= len(self._agents):
            raise ValueError(f"subagent_depth: {depth} after a row of depth {len(self._agents) - 1}")
        del self._agents[depth + 1 :]
        if depth and len(self._agents) > depth and number(record, "t_s") < self._agents[depth].sent_s:
            del self._agents[depth:]
        if depth == len(self._agents):
            self._subagents += 1
            parent = self._agents[-1]
            self._agents.append(_Agent(f"{session}/{self._subagents}", parent.start_s + parent.sent_s))
        return self._agents[depth]
