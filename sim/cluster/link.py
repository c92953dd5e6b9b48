"""The link over which KV moves from the replica that computed a prompt to the one that writes the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sim.memory.footprint import KvFootprint

__all__ = ["Link", "Move", "Port"]


@dataclass(frozen=True, slots=True)
class Port:
    """What ties a replica to the link: *bytes_per_s* of each of its ranks, in each direction [B/s]."""

    kv: KvFootprint
    bytes_per_s: float


class Move(NamedTuple):
    """One transfer: when the link begins with it, when all of it is there, and how much it is."""

    begin_s: float
    arrive_s: float
    moved_bytes: float


class Link:
    """Every replica sends, and receives, one transfer after the other, in the order in which they become possible.

    A transfer takes the port of the sender for as long as its bytes need, and that of the receiver as well, which may
    lag behind while others are received. All ranks send at once; where one end has fewer, these are waited for. Ports
    are queues since SGLang's senders are (`SGLANG_DISAGGREGATION_QUEUE_SIZE` of them, one request after the other in
    each). Sharing a port among requests, as concurrent reads of vLLM's NIXL connector do, ends with the same last byte,
    but later for those in front.

    Parameters
    ----------
    ports
        By the number of the replica.
    latency_s
        What passes for every transfer beside its bytes, and does not occupy the ports [s].
    """

    def __init__(self, ports: Mapping[int, Port], latency_s: float) -> None:
        self._ports, self._latency_s = ports, latency_s
        self._free_s = dict.fromkeys(ports, 0.0)

    def move(self, sender: int, receiver: int, tokens: int, *, since_s: float, ready_s: float) -> Move:
        """Send the KV of the last *tokens* tokens of a prompt, which is computed from *since_s* to *ready_s*.

        Layers go as soon as they are computed: the last one can only begin at *ready_s*.
        """
        source, target = self._ports[sender], self._ports[receiver]
        moved_bytes = target.kv.moved_bytes(tokens)
        if not moved_bytes:
            return Move(ready_s, ready_s, 0.0)
        ranks = min(source.kv.ranks, target.kv.ranks)
        takes_s = moved_bytes / (ranks * min(source.bytes_per_s, target.bytes_per_s))
        begin_s = max(since_s, self._free_s[sender])
        sent_s = max(begin_s + takes_s, ready_s + takes_s / source.kv.layers)
        received_s = max(sent_s, self._free_s[receiver] + takes_s)
        self._free_s[sender], self._free_s[receiver] = sent_s, received_s
        return Move(begin_s, received_s + self._latency_s, moved_bytes)
