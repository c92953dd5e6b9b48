"""How many drafted tokens were right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.metrics.rows import StrideRows

__all__ = ["Acceptance", "acceptance_of"]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Tokens a verification, and accepted tokens a drafted one [%], as `vllm bench serve` has them; None: no drafts."""

    length: float | None = None
    rate: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        """Return it under its public keys."""
        return {"spec_decode_acceptance_length": self.length, "spec_decode_acceptance_rate": self.rate}


def acceptance_of(strides: StrideRows, draft_tokens: NDArray[np.float64]) -> Acceptance:
    """Return what became of drafts of *draft_tokens* for each of the *strides*, 0 where nothing is drafted [tokens]."""
    drafts = strides.decodes * strides.iterations * (draft_tokens > 0)
    if not drafts.any():
        return Acceptance()
    emitted, verified = int(strides.emitted[draft_tokens > 0].sum()), int(drafts.sum())
    return Acceptance(emitted / verified, 100 * (emitted - verified) / float(np.dot(drafts, draft_tokens)))
