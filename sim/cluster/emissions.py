"""When the decodes of a replica last emitted: what an inter-token gap is counted from."""

from __future__ import annotations

from sim.request import Request

__all__ = ["Emissions"]


class Emissions:
    """Decodes grouped by the time of their last token; nearly always one group, whose gaps are the iterations."""

    def __init__(self) -> None:
        self._all_s = float("-inf")
        self._groups: dict[float, int] = {}

    def join(self, request: Request) -> None:
        """Count *request*, which last emitted at its `last_token_s` and decodes from now on."""
        at_s = request.last_token_s
        self._groups[at_s] = self._groups.get(at_s, 0) + 1

    def leave(self, request: Request) -> None:
        """Forget *request*, which stops decoding, and note on it when it last emitted."""
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
        return gaps
