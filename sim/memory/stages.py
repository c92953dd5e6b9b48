"""How a model is cut over the ranks of one replica, and when it cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise

from sim.profiles.model import (
    AnyAttention,
    AnyMlp,
    CompressedAttention,
    DenseMlp,
    GroupedAttention,
    LatentAttention,
    Layers,
    LinearAttention,
    Model,
    MoeMlp,
)
from sim.profiles.parallelism import Parallelism

__all__ = ["VOCAB_MULTIPLE", "obstacles", "padded_vocab", "rank_layer", "stage_sizes", "stages"]

VOCAB_MULTIPLE = 64
"""The vocabulary is padded to a multiple of this (vLLM `DEFAULT_VOCAB_PADDING_SIZE`)."""


def stage_sizes(layers: int, pp: int) -> list[int]:
    """Count the layers of each pipeline stage.

    What does not divide goes, one layer each, to the stages before the last, from the back (vLLM
    `distributed/utils.py: get_pp_indices`): the last stage has the head, the first the embedding.
    """
    sizes = [layers // pp] * pp
    for back in range(2, layers % pp + 2):
        sizes[-back] += 1
    return sizes


def stages(model: Model, pp: int) -> list[range]:
    """Return the layers of each stage by their index."""
    return [range(*bounds) for bounds in pairwise([0, *accumulate(stage_sizes(model.num_layers, pp))])]


def padded_vocab(vocab: int) -> int:
    """Return the vocabulary as the embedding and the head store it."""
    return -(-vocab // VOCAB_MULTIPLE) * VOCAB_MULTIPLE


def rank_layer(layer: Layers, parallelism: Parallelism) -> Layers:
    """Return *layer* as one rank holds it: its heads, its share of the widths, its experts.

    KV heads are replicated where tp exceeds them, and latents always. Widths are rounded up. Routed experts live
    on all ``tp x dp`` ranks of a stage: whole ones on ``ep`` of them, the rest of the ranks cuts each one's width.
    """
    return layer.model_copy(
        update={
            "attention": _rank_attention(layer.attention, parallelism.tp),
            "mlp": _rank_mlp(layer.mlp, parallelism),
        }
    )


def _share(width: int, ranks: int) -> int:
    return -(-width // ranks)


def _rank_attention(attention: AnyAttention | None, tp: int) -> AnyAttention | None:
    match attention:
        case GroupedAttention():
            heads = {"heads": _share(attention.heads, tp), "kv_heads": _share(attention.kv_heads, tp)}
            return attention.model_copy(update=heads)
        case LatentAttention():
            return attention.model_copy(update={"heads": _share(attention.heads, tp)})
        case CompressedAttention():
            heads = {"heads": _share(attention.heads, tp), "o_groups": _share(attention.o_groups, tp)}
            return attention.model_copy(update=heads)
        case LinearAttention():
            part = {"params": _share(attention.params, tp), "state_bytes": attention.state_bytes / tp}
            return attention.model_copy(update=part)
        case _:
            return None


def _rank_mlp(mlp: AnyMlp, parallelism: Parallelism) -> AnyMlp:
    tp, ep = parallelism.tp, parallelism.ep
    if isinstance(mlp, DenseMlp):
        return mlp.model_copy(update={"intermediate": _share(mlp.intermediate, tp)})
    if not isinstance(mlp, MoeMlp):
        return mlp
    return mlp.model_copy(
        update={
            "experts": _share(mlp.experts, ep),
            "expert_intermediate": _share(mlp.expert_intermediate, _cuts(parallelism)),
            "shared_intermediate": _share(mlp.shared_intermediate, tp),
        }
    )


def _cuts(parallelism: Parallelism) -> int:
    """Ranks that share the width of one routed expert."""
    return max(1, parallelism.tp * parallelism.dp // parallelism.ep)


def obstacles(model: Model, parallelism: Parallelism, block: int = 1) -> list[str]:
    """Return why the ranks cannot share this model, in words; empty when they can.

    Parameters
    ----------
    block
        Multiple that a rank's share of a quantised width must be: 128 for weights with scales of 128 x 128
        blocks, which vLLM and SGLang refuse to cut otherwise (vLLM `quantization/fp8.py`).
    """
    return list(dict.fromkeys(_obstacles(model, parallelism, block)))


def _obstacles(model: Model, parallelism: Parallelism, block: int) -> Iterator[str]:
    tp, dp, ep = parallelism.tp, parallelism.dp, parallelism.ep
    if parallelism.pp > model.num_layers:
        yield f"{parallelism.pp} pipeline stages for {model.num_layers} layers"
    if (tp * dp) % ep:
        yield f"ep {ep} does not divide tp x dp = {tp * dp}"
    if (vocab := padded_vocab(model.vocab_size)) % tp:
        yield f"the vocabulary of {vocab:,} entries (padded to {VOCAB_MULTIPLE}) does not divide by tp {tp}"
    for layer in model.layers:
        yield from _attention_obstacles(layer.attention, tp)
        yield from _mlp_obstacles(layer.mlp, parallelism, block)


def _attention_obstacles(attention: AnyAttention | None, tp: int) -> Iterator[str]:
    if attention is None or isinstance(attention, LinearAttention):
        return
    if attention.heads % tp:
        yield f"{attention.heads} attention heads do not divide by tp {tp}"
    if isinstance(attention, GroupedAttention) and attention.kv_heads % tp and tp % attention.kv_heads:
        yield f"{attention.kv_heads} KV heads and tp {tp}: neither divides the other"


def _mlp_obstacles(mlp: AnyMlp, parallelism: Parallelism, block: int) -> Iterator[str]:
    if isinstance(mlp, DenseMlp):
        yield from _cut("feed-forward width", mlp.intermediate, parallelism.tp, block)
    elif isinstance(mlp, MoeMlp):
        yield from _cut("expert width", mlp.expert_intermediate, _cuts(parallelism), block)
        yield from _cut("shared expert width", mlp.shared_intermediate, parallelism.tp, 1)
        if mlp.experts % parallelism.ep:
            yield f"{mlp.experts} experts do not divide by ep {parallelism.ep}"


def _cut(what: str, width: int, ranks: int, block: int) -> Iterator[str]:
    if width % ranks:
        yield f"{what} {width:,} does not divide by {ranks} ranks"
    elif ranks > 1 and (width // ranks) % block:
        yield f"{what} {width:,} over {ranks} ranks is no multiple of the {block} of its weight blocks"
