"""Time of the masks that keep sampled tokens to a grammar."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Masks"]


@dataclass(frozen=True, slots=True)
class Masks:
    """A mask over the vocabulary for each token that is sampled of a sequence with a grammar, made on the host.

    What it takes to apply them on the GPU is left out: one pass over the logits.

    Attributes
    ----------
    mask_s
        One mask on one core [s].
    overlapped
        They are made while the GPU computes the logits that they are for; else it waits.
    threads
        Cores that make masks at once where there are more than *serial_up_to*.
    """

    mask_s: float
    overlapped: bool
    threads: int = 1
    serial_up_to: int = 0

    def seconds(self, masks: int) -> float:
        """Return the time of so many *masks* [s]."""
        return self.mask_s * masks / (1 if masks <= self.serial_up_to else self.threads)
