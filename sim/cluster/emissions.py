"""When the decodes of a replica last emitted: what an inter-token gap is counted from."""

from __future__ import annotations

import math

from sim.request import Request

__all__ = ["Emissions"]


class Emissions:
    """Decodes grouped by the time of their last token; nearly always one group, whose gaps are the iterations.

    Those whose prompt another replica has computed may decode without having emitted anything: they are silent yet.
    """

    def __init__(self) -> None:
        self._all_s = float("-inf")
        self._groups: dict[float, int] = {}
        self._silent: dict[Request, None] = {}

    def join(self, request: Request) -> None:
        """Count *request*, which last emitted at its `last_token_s`, if ever, and decodes from now on."""
        at_s = request.last_token_s
        if math.isnan(at_s):
            self._silent[request] = None
            return
        self._groups[at_s] = self._groups.get(at_s, 0) + 1

    def leave(self, request: Request) -> None:
        """Forget *request*, which stops decoding, and note on it when it last emitted."""
        if request in self._silent:
            del self._silent[request]
            return
        request.last_token_s = max(request.last_token_s, self._all_s)
        self._groups[request.last_token_s] -= 1

    def at(self, start_s: float) -> int:
        """Return how many emitted at *start_s*, so that the iteration that starts then is their gap."""
        return self._groups.get(start_s, 0)

    def emit(self, first_s: float, last_s: float) -> list[tuple[float, int]]:
        """Let every decode emit at *first_s* and on until *last_s*; return the gaps that end at *first_s*, counted."""
        gaps = [(first_s - at_s, count) for at_s, count in self._groups.items() if count]
        self._groups = {last_s: sum([count for _, count in gaps])}
        self._all_s = last_s
        if self._silent:
            self._speak_up(first_s, last_s)
        return gaps

    def go_on(self, last_s: float, count: int) -> None:
        """As `emit`, where all *count* decodes emitted as the stride began: their gaps are its iterations."""
        self._groups = {last_s: count}
        self._all_s = last_s

    def _speak_up(self, first_s: float, last_s: float) -> None:
        for request in self._silent:
            request.first_token_s, request.last_token_s = first_s, last_s
        self._groups[last_s] += len(self._silent)
        self._silent.clear()
