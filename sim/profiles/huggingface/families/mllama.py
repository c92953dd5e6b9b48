"""Llama 3.2 Vision: some layers attend to the image instead of the text."""

from __future__ import annotations

from sim.profiles.huggingface.blocks import Architecture, dense, grouped, head_dim, hidden, layer, num_layers
from sim.profiles.huggingface.config import Config

__all__ = ["READERS"]

IMAGE_ROWS = 8
"""Rows of the input embedding beyond the vocabulary, for image tokens."""


def _read(config: Config) -> Architecture:
    """Cross-attention layers have QK norms and two gates, and cache nothing for a text token."""
    size, cross = hidden(config), config.indices("cross_attention_layers")
    to_image = grouped(config, cross=True, extra=2 * head_dim(config) + 2)
    layers = [
        layer(to_image if index in cross else grouped(config), dense(config), 2 * size)
        for index in range(num_layers(config))
    ]
    return Architecture(layers=layers, extra_params=size + IMAGE_ROWS * size)


READERS = {"mllama_text_model": _read}
