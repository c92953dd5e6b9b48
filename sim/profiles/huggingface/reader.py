"""From a Hugging Face checkpoint to a `Model`, by the reader of its architecture."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from sim.errors import ProfileError, did_you_mean
from sim.paths import is_folder
from sim.profiles.huggingface.blocks import Architecture, head_dim, hidden
from sim.profiles.huggingface.config import Config
from sim.profiles.huggingface.families import readers
from sim.profiles.huggingface.files import Checkpoint, open_checkpoint
from sim.profiles.huggingface.quantization import read_quantization
from sim.profiles.huggingface.rotary import table_elements
from sim.profiles.huggingface.vision import vision_params
from sim.profiles.layers import Layers
from sim.profiles.model import KIND_LETTERS, Model
from sim.profiles.quantization import Quantization

__all__ = ["read"]

LANGUAGE_MODELS = ("text_config", "llm_config", "language_config")
"""Where vision-language models keep the config of their language model."""
DTYPES: dict[str, Literal["bf16", "fp16"]] = {"bfloat16": "bf16", "float16": "fp16", "float32": "bf16"}
"""Engines load a checkpoint in fp32 in 16 bit unless they are told otherwise."""

STRUCTURAL = (
    *("num_local_experts", "n_routed_experts", "num_experts", "n_shared_experts"),
    *("shared_expert_intermediate_size", "kv_lora_rank", "index_topk", "compress_ratios", "sparse_attention_config"),
    *("linear_attn_config", "linear_num_key_heads", "ssm_state_size", "mamba_d_state", "hybrid_override_pattern"),
    *("hybrid_layer_pattern", "block_configs", "cross_attention_layers", "num_kv_shared_layers", "layer_types"),
)
"""Keys that no reader may pass over: a model that has them differs from others of its `model_type`."""


def read(path: str | Path, name: str | None = None) -> Model:
    """Read a config.json, a model folder, or an index or safetensors file beside its config.json.

    Parameters
    ----------
    name
        Name of the model; missing: the folder's, or the file's where it is not called config.json.

    Raises
    ------
    ProfileError
        One line with file and key: no such file, not a config, an architecture or quantisation that this program does
        not know, a value that is missing or makes no sense. Nothing is ever guessed in silence: see `Model.notes`.
    """
    checkpoint = open_checkpoint(Path(path))
    try:
        return _model(checkpoint, name or _name(Path(path)))
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise ProfileError(f"makes no sense: {problem['msg']}", file=checkpoint.config.file, path=where) from error


def _model(checkpoint: Checkpoint, name: str) -> Model:
    outer = checkpoint.config
    text = outer.part(*LANGUAGE_MODELS) or outer
    architecture = _architecture(text, outer)
    quantization, notes = _quantization(checkpoint, text, architecture.layers)
    kinds, order = _by_kind(architecture.layers, text)
    size = hidden(text)
    vision, vision_notes = vision_params(outer, size)
    positions = text.whole(
        "max_position_embeddings", "model_max_length", "max_seq_len", default=architecture.max_position_embeddings
    )
    return Model(
        name=name,
        sources={"all": f"Hugging Face {Path(outer.file).name}, model_type {_model_type(text, outer)}"},
        notes=" ".join([*architecture.notes, *notes, *vision_notes]),
        architecture=_model_type(text, outer),
        hidden_size=size,
        vocab_size=text.whole("vocab_size", default=architecture.vocab_size, most=10**8),
        max_position_embeddings=positions,
        tied_embeddings=text.flag("tie_word_embeddings", outer.flag("tie_word_embeddings", architecture.tied)),
        layers=kinds,
        order=order,
        extra_params=size if architecture.extra_params is None else architecture.extra_params,
        position_elements=_position_elements(text, architecture, positions),
        vision_params=vision,
        mtp_params=architecture.mtp_params,
        dtype=_dtype(text, outer),
        checkpoint=quantization,
        checkpoint_bytes=checkpoint.tensor_bytes(),
    )


def _model_type(text: Config, outer: Config) -> str:
    return text.text("model_type") or outer.text("model_type")


def _architecture(text: Config, outer: Config) -> Architecture:
    known, kind = readers(), _model_type(text, outer)
    if not kind:
        text.fail("model_type", "missing: a config.json names its architecture there")
    if kind not in known:
        near = did_you_mean(kind, [name for name in known if _digits(name) == _digits(kind)], cutoff=0.75)
        advice = near or ": write a profile of the model (docs/extending.md)"
        text.fail("model_type", f"{kind!r} is not an architecture that this program reads{advice}")
    architecture = known[kind](text)
    text.refuse_unread(STRUCTURAL)
    return architecture


def _digits(name: str) -> str:
    """Return the digits of a *name*: another release is no misspelling."""
    return "".join(filter(str.isdigit, name))


def _quantization(checkpoint: Checkpoint, text: Config, layers: Sequence[Layers]) -> tuple[Quantization, list[str]]:
    config = (
        text.part("quantization_config") or checkpoint.config.part("quantization_config") or checkpoint.quantization
    )
    types, notes = (Quantization(), []) if config is None else read_quantization(config, layers)
    if text.text("expert_dtype") == "fp4":  # DeepSeek V4: experts in fp4 with one scale a 32, beside fp8 elsewhere
        types = types.model_copy(update={"experts": "mxfp4"})
    return types, notes


def _by_kind(layers: Sequence[Layers], config: Config) -> tuple[tuple[Layers, ...], str]:
    """Return the different layers with their counts, and the order of all if they do not lie in consecutive runs."""
    counts = Counter(layers)
    if len(counts) > len(KIND_LETTERS):
        config.fail("num_hidden_layers", f"{len(counts)} different kinds of layers are more than {len(KIND_LETTERS)}")
    letters = dict(zip(counts, KIND_LETTERS, strict=False))
    order = "".join(letters[layer] for layer in layers)
    kinds = tuple(layer.model_copy(update={"count": count}) for layer, count in counts.items())
    return kinds, "" if len([*itertools.groupby(order)]) == len(kinds) else order


def _position_elements(text: Config, architecture: Architecture, positions: int) -> int:
    width = head_dim(text) if architecture.rotary_dim is None else architecture.rotary_dim
    return table_elements(text, width, positions, local=architecture.local_rotary) if width else 0


def _dtype(text: Config, outer: Config) -> Literal["bf16", "fp16"]:
    for config in (text, outer):
        key, value = config.get("dtype", "torch_dtype")
        if value is not None:
            kind = config.text(key).removeprefix("torch.")
            if kind not in DTYPES:
                config.fail(key, f"{kind!r} is none of {', '.join(DTYPES)}")
            return DTYPES[kind]
    return "bf16"


def _name(path: Path) -> str:
    if is_folder(path):
        return path.resolve().name
    beside_config = path.name == "config.json" or path.name.endswith((".safetensors", ".index.json"))
    return path.resolve().parent.name if beside_config else path.stem
