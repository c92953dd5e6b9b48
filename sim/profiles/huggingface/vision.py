"""How many weights the vision tower and its projector have, which a multimodal checkpoint brings along.

Towers are transformers of 4*h*h + 2*h*I weights a layer (3*h*I if gated). Biases and norms are counted roughly, which
is good to 1 % of the tower. Shapes are those of the `modeling_*.py` of transformers 5.24.
"""

from __future__ import annotations

from collections.abc import Callable

from sim.profiles.huggingface.config import Config

__all__ = ["vision_params"]


def vision_params(config: Config, text_size: int) -> tuple[int, list[str]]:
    """Return the weights of the tower that the outer *config* describes, and a note if it is of an unknown kind.

    Parameters
    ----------
    text_size
        Hidden size of the language model, to which the projector leads.
    """
    tower, kind = config.part("vision_config"), config.text("model_type")
    if tower is None:
        return 0, []
    if kind not in PROJECTORS:
        return 0, [f"The vision tower of {kind} is not counted."]
    size = tower.whole("hidden_size", "vt_hidden_size")
    return _tower(tower, size, gated=kind in GATED) + PROJECTORS[kind](tower, config, size, text_size), []


GATED = frozenset({"mistral3", "qwen2_5_vl", "gemma4"})


def _tower(tower: Config, size: int, *, gated: bool) -> int:
    count = tower.whole("num_hidden_layers", "depth", "vt_num_hidden_layers") + tower.whole(
        "num_global_layers", default=0, least=0
    )
    width = tower.whole("intermediate_size", "vt_intermediate_size", default=4 * size)
    layers = count * (4 * size * size + (3 if gated else 2) * size * width + 9 * size + width)
    patch = tower.whole("patch_size") ** 2 * 3 * tower.whole("temporal_patch_size", default=1)
    return layers + (patch + _positions(tower)) * size


def _positions(tower: Config) -> int:
    """Return the rows of learned position embeddings; a table of rows and one of columns in Gemma 4."""
    if tower.has("position_embedding_size"):
        return 2 * tower.whole("position_embedding_size")
    if tower.has("init_pos_emb_height"):
        return tower.whole("init_pos_emb_height") * tower.whole("init_pos_emb_width")
    if tower.text("model_type") in {"siglip_vision_model", "llama4_vision_model", "mllama_vision_model"}:
        return (tower.whole("image_size") // tower.whole("patch_size")) ** 2
    return tower.whole("num_position_embeddings", default=0, least=0)


def _linear(tower: Config, outer: Config, size: int, text_size: int) -> int:
    return size * text_size


def _merging(tower: Config, outer: Config, size: int, text_size: int) -> int:
    """Mistral 3: a patch merger, then two layers."""
    patches = outer.whole("spatial_merge_size", default=2) ** 2
    return patches * size * size + size * text_size + text_size * text_size


def _merger(tower: Config, outer: Config, size: int, text_size: int) -> int:
    """Qwen-VL and Kimi: two layers on merged patches, once more for each deepstack level."""
    merged = size * tower.whole("spatial_merge_size", default=2) ** 2
    return (1 + len(tower.indices("deepstack_visual_indexes"))) * (merged * merged + merged * text_size)


def _llama4(tower: Config, outer: Config, size: int, text_size: int) -> int:
    inner = tower.whole("projector_output_dim")
    return tower.whole("intermediate_size") * tower.whole("projector_input_dim") + inner * inner + inner * text_size


def _mllama(tower: Config, outer: Config, size: int, text_size: int) -> int:
    """Llama 3.2: one layer, and position embeddings for every aspect ratio, tile and patch."""
    ratios, tiles = tower.entries("supported_aspect_ratios") + 1, tower.whole("max_num_tiles")
    return tower.whole("vision_output_dim") * text_size + ratios * tiles * (_positions(tower) + 3) * size


PROJECTORS: dict[str, Callable[[Config, Config, int, int], int]] = {
    "gemma3": _linear,
    "gemma4": _linear,
    "mistral3": _merging,
    **dict.fromkeys(
        ["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "kimi_k25", "kimi_vl"], _merger
    ),
    "llama4": _llama4,
    "mllama": _mllama,
}
