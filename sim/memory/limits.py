"""The knobs of an engine that decide how memory is divided."""

from __future__ import annotations

from dataclasses import dataclass

from sim.profiles.engine_graphs import Graphs

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one replica promises to serve, and with how much of the card.

    Attributes
    ----------
    max_model_len
        Longest sequence, prompt and answer [tokens].
    max_num_seqs
        Sequences that may run at once.
    max_num_batched_tokens
        Tokens that one iteration computes at most.
    gpu_memory_utilization
        Share of the card that the engine may use (vLLM), of free memory for weights and KV cache (SGLang,
        `mem_fraction_static`; None: its own rule), or of what is left for the KV cache (TensorRT-LLM).
    block_size
        Tokens of one KV block.
    captured
        Batches that are captured as CUDA graphs, ascending; none with `enforce_eager`. None: those of *graphs*.
    graphs
        What the engine captures by itself; None: not known.
    min_sequences
        Sequences of `max_model_len` for which there must be KV cache; engines start with one, but those that give
        each slot a context of its own need it for `max_num_seqs`.
    """

    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    gpu_memory_utilization: float | None = 0.9
    block_size: int = 16
    captured: tuple[int, ...] | None = None
    graphs: Graphs | None = None
    min_sequences: int = 1
