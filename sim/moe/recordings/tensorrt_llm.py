"""Expert statistics of TensorRT-LLM: the folder that ``EXPERT_STATISTIC_PATH`` names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sim.errors import TraceError
from sim.moe.expert_map import Floats
from sim.moe.recordings.content import as_loads, json_of, read_bytes

__all__ = ["read_statistics"]

_TYPES = {"I32": "<i4", "I64": "<i8", "F32": "<f4", "F64": "<f8"}


def read_statistics(folder: Path) -> Floats:
    """Return the loads, shape (layers, experts): the tensors ``ITERATION_LAYER`` of all ``rankN.safetensors``, summed.

    Layers are those that have a tensor, in order.
    """
    files = sorted(file for file in folder.iterdir() if re.fullmatch(r"rank\d+\.safetensors", file.name))
    by_layer: dict[int, Floats] = {}
    for file in files:
        for name, counts in _tensors(file):
            if not re.fullmatch(r"\d+_\d+", name):
                raise TraceError(f"tensor {name[:40]!r} where ITERATION_LAYER is wanted", file=str(file))
            layer = int(name.partition("_")[2])
            if by_layer.setdefault(layer, np.zeros(len(counts))).shape != counts.shape:
                raise TraceError("is ragged: every layer needs equally many numbers", file=str(file))
            by_layer[layer] += counts
    if not by_layer:
        raise TraceError("is a folder without rankN.safetensors that hold loads", file=str(folder))
    return as_loads([by_layer[layer].tolist() for layer in sorted(by_layer)], folder)


def _tensors(file: Path) -> Iterator[tuple[str, Floats]]:
    """Yield name and values of every tensor: 8 bytes that give the length of a JSON header, the header, the data."""
    content = read_bytes(file)
    length = int.from_bytes(content[:8], "little")
    header, data = json_of(content[8 : 8 + length], file), content[8 + length :]
    try:
        for name, tensor in header.items():
            if name != "__metadata__":
                start, stop = tensor["data_offsets"]
                yield str(name), np.frombuffer(data[start:stop], _TYPES[tensor["dtype"]]).astype(np.float64)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise TraceError("is no safetensors file of counts", file=str(file)) from None
