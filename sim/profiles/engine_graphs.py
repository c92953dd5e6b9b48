"""Which batches an engine captures as CUDA graphs, and how smaller ones are filled up to them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sim.profiles.hardware import Hardware
from sim.section import Section
from sim.units import Bytes, Seconds

__all__ = ["LARGEST_GRAPH", "MOST_SEQUENCES", "CapturedSizes", "GraphLimit", "Graphs"]

LARGEST_GRAPH = 10**6
"""Tokens or sequences beyond which no batch is captured: many times those of any engine, and still few sizes."""

MOST_SEQUENCES = 2048
"""Sequences of a batch where an engine's own limit is not told."""


class GraphLimit(Section):
    """Largest batch that is captured on some accelerators; the first that applies counts."""

    gpu_memory_at_least_bytes: Bytes = Field(0.0, ge=0, description="Visible memory from which it applies [B].")
    max_size: int = Field(gt=0, le=LARGEST_GRAPH, description="Largest batch.")
    from_tp_4: int | None = Field(
        None, gt=0, le=LARGEST_GRAPH, description="The same with tensor parallelism over 4 or more."
    )


class CapturedSizes(Section):
    """Batches that are captured, up to the largest; a smaller batch runs at the next of them."""

    first: tuple[int, ...] = Field(description="Smallest sizes, ascending.")
    steps: tuple[tuple[int, int], ...] = Field(
        min_length=1, description="Then multiples of the second number, up to the first; the last goes on for ever."
    )
    drafts_first: tuple[int, ...] | None = Field(None, description="The same where drafts are verified, if it differs.")
    drafts_steps: tuple[tuple[int, int], ...] | None = Field(None, description="The same.")
    prompts: bool = Field(False, description="Batches with prompts are filled up, too.")
    experts: bool = Field(True, description="Rows added are routed to experts like others; else they are masked.")
    experts_with_ep: bool = Field(True, description="The same where experts are spread over ranks.")
    head: bool = Field(False, description="Rows added pass the output head.")

    def up_to(self, largest: int, *, drafts: bool) -> tuple[int, ...]:
        """Return the sizes up to *largest*, which is one of them."""
        first = self.drafts_first if drafts and self.drafts_first is not None else self.first
        steps = self.drafts_steps if drafts and self.drafts_steps is not None else self.steps
        sizes = {*first, largest}
        begin = max(first, default=0)
        for place, (until, step) in enumerate(steps):
            end = largest if place == len(steps) - 1 else until
            sizes.update(range((begin // step + 1) * step, end + 1, step))
            begin = end
        return tuple(sorted(size for size in sizes if size <= largest))


class Graphs(Section):
    """Kernels of a decode are captured and replayed at once; of larger batches the host launches each by itself."""

    limits: tuple[GraphLimit, ...] = Field((), description="None: as large as a batch may be.")
    per_sequence: int | None = Field(
        None, gt=0, description="Nothing is captured beyond so many times the tokens that max_num_seqs decodes compute."
    )
    counts: Literal["sequences", "tokens"] = Field("sequences", description="What a captured size counts.")
    launch_s: Seconds = Field(ge=0, description="Time in which the host launches the kernels of a layer [s].")
    sizes: CapturedSizes | None = Field(None, description="Missing: every batch is captured as it is.")
    padded: bool = Field(True, description="Smaller batches are filled up to these sizes if nothing is said.")

    def largest_on(self, hardware: Hardware, tp: int, decode_tokens: int) -> int | None:
        """Return the largest batch that is captured on *hardware*; None: no limit.

        Parameters
        ----------
        decode_tokens
            Tokens that an iteration computes in which as many decode as may run [tokens].
        """
        bounds = [] if self.per_sequence is None else [self.per_sequence * decode_tokens]
        for limit in self.limits:
            if hardware.visible_memory_bytes >= limit.gpu_memory_at_least_bytes:
                bounds.append(limit.from_tp_4 if tp >= 4 and limit.from_tp_4 is not None else limit.max_size)
                break
        return min(bounds, default=None)

    def sizes_up_to(self, largest: int | None, *, drafts: bool = False) -> tuple[int, ...] | None:
        """Return the batches that are captured, the *largest* of which is known (None: no limit); None: not known."""
        if largest == 0:
            return ()
        return None if self.sizes is None else self.sizes.up_to(largest or MOST_SEQUENCES, drafts=drafts)
