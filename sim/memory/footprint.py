"""What the ranks of a replica keep of a sequence, and so what must reach them from another replica."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sim.memory.deployment import kv_dtype_of
from sim.memory.kv_groups import layer_caches
from sim.profiles.draft import Draft
from sim.profiles.model import Model
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Quantization

__all__ = ["KvFootprint"]


@dataclass(frozen=True, slots=True)
class KvFootprint:
    """Keys, values, latents, indices and states of a sequence on all ranks of a replica that share its attention.

    What every rank keeps, such as the latent of MLA or a KV head where there are fewer heads than ranks, counts once a
    rank: each of them is sent its own.

    Attributes
    ----------
    ranks
        How many ranks there are.
    layers
        Layers of the model, and of the one that drafts.
    token_bytes
        By attention window, None for all tokens: what is kept of one token [B].
    state_bytes
        What does not grow with the context [B].
    """

    ranks: int
    layers: int
    token_bytes: tuple[tuple[int | None, float], ...]
    state_bytes: float = 0.0

    @classmethod
    def of(
        cls, model: Model, quantization: Quantization, parallelism: Parallelism, draft: Draft | None = None
    ) -> KvFootprint:
        """Return the footprint of *model*, and of the one that drafts for it, on one attention rank of a replica.

        What the draft keeps is sent with the rest: vLLM registers all caches (`nixl_connector.py`), SGLang appends
        those of the draft (`disaggregation/prefill.py`).
        """
        kv_dtype = kv_dtype_of(model, quantization)
        kept: Counter[int | None] = Counter()
        state_bytes = 0.0
        for layer in model.stack:
            for cache in layer_caches(layer.attention, parallelism.tp, kv_dtype):
                kept[cache.window] += parallelism.tp * cache.token_bytes  # type: ignore[assignment]
                state_bytes += parallelism.tp * cache.state_bytes
        if draft is not None:
            own_bytes = draft.token_bytes(kv_dtype, parallelism.tp)
            kept[None] += draft.ranks(parallelism.tp) * own_bytes  # type: ignore[assignment]
        layers = model.num_layers + (0 if draft is None else draft.model.num_layers)
        token_bytes = tuple((window, size) for window, size in kept.items() if size)
        return cls(parallelism.tp * parallelism.pp, layers, token_bytes, state_bytes)

    def moved_bytes(self, tokens: int) -> float:
        """Return what the last *tokens* tokens of a prompt take, with all states [B]; nothing for no tokens."""
        if not tokens:
            return 0.0
        kept = [size * (tokens if window is None else min(tokens, window)) for window, size in self.token_bytes]
        return sum(kept) + self.state_bytes
