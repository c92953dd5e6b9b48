"""Grammars that one replica has compiled."""

from __future__ import annotations

__all__ = ["Grammars"]


class Grammars:
    """The first request with a grammar waits *compile_s* for it, beside the queue; later ones find it [s].

    So vLLM (`v1/structured_output`) and SGLang (`constrained/grammar_manager.py`) do, with threads for the compiler;
    how many there are, and how many grammars are remembered, has no limit here.
    """

    def __init__(self, compile_s: float) -> None:
        self._compile_s = compile_s
        self._ready_s: dict[str, float] = {}

    def ready_s(self, name: str, asked_s: float) -> float:
        """Return when a request that needs the grammar *name* from *asked_s* on can be queued [s]."""
        return max(self._ready_s.setdefault(name, asked_s + self._compile_s), asked_s)
