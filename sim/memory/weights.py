"""Weights that one rank holds, as an engine stores them."""

from __future__ import annotations

from collections import Counter
from typing import get_args

from sim.memory.stages import padded_vocab, rank_layer
from sim.profiles.engine_memory import Activations, Padding
from sim.profiles.model import Layers, Model, MoeMlp
from sim.profiles.parallelism import Parallelism
from sim.profiles.params import Component, absorbed_params, expert_params, layer_params
from sim.profiles.quantization import Part, Quantization, bytes_per_element

__all__ = ["stage_weight_bytes"]

_COMPONENTS: tuple[Component, ...] = (*get_args(Part), "other")


def stage_weight_bytes(
    model: Model, quantization: Quantization, parallelism: Parallelism, layers: range, engine: Activations
) -> float:
    """Return the weights of one rank of the pipeline stage that computes *layers* [B].

    The first stage holds the embedding and a vision tower, the last one the head (a copy of the embedding where
    they are tied), and every rank its rotary tables. Where the checkpoint's tensors were listed, what the formulas
    miss of them is spread evenly.
    """
    sizes = {part: bytes_per_element(model.dtype_of(part, quantization)) for part in _COMPONENTS}
    padding = engine.padding.get(model.dtype_of("experts", quantization), Padding())
    language = _ends_bytes(model, parallelism, layers, sizes)
    copies = 0
    for kind, count in Counter(id(model.stack[index]) for index in layers).items():
        whole = next(layer for layer in model.layers if id(layer) == kind)
        own = rank_layer(whole, parallelism)
        language += count * _layer_bytes(whole, own, model.hidden_size, sizes, padding)
        copies += count * absorbed_params(own.attention) if engine.mla_absorbed_copies else 0
    listed = model.weight_bytes(quantization) / sum(model.weight_bytes_by_component(quantization).values())
    vision = model.vision_params / parallelism.tp if layers.start == 0 else 0.0
    return language * listed + (model.position_elements + copies + vision) * sizes["other"]


def _ends_bytes(model: Model, parallelism: Parallelism, layers: range, sizes: dict[Component, float]) -> float:
    """Return embedding, head and final norm, where the stage has them [B]."""
    first, last = layers.start == 0, layers.stop == model.num_layers
    matrix = padded_vocab(model.vocab_size) * model.hidden_size / parallelism.tp
    embedding = matrix * sizes["embeddings"] if first or (last and model.tied_embeddings) else 0.0
    head = matrix * sizes["head"] if last and not model.tied_embeddings else 0.0
    return embedding + head + (model.extra_params * sizes["other"] if last else 0.0)


def _layer_bytes(
    whole: Layers, own: Layers, hidden_size: int, sizes: dict[Component, float], padding: Padding
) -> float:
    """Return one rank's part of one layer [B]; every rank routes among all experts."""
    counts = layer_params(own, hidden_size)
    if isinstance(own.mlp, MoeMlp) and isinstance(whole.mlp, MoeMlp):
        counts["experts"] = own.mlp.experts * expert_params(_padded(own.mlp, hidden_size, padding), hidden_size)
        counts["other"] += (whole.mlp.experts - own.mlp.experts) * hidden_size
    return sum(number * sizes[part] for part, number in counts.items())


def _padded(moe: MoeMlp, hidden_size: int, padding: Padding) -> MoeMlp:
    """Return *moe* with expert matrices as large as the engine's kernel wants them."""
    hidden = -(-(moe.latent or hidden_size) // padding.hidden) * padding.hidden
    width = -(-moe.expert_intermediate // padding.intermediate) * padding.intermediate
    return moe.model_copy(update={"latent": hidden, "expert_intermediate": width})
