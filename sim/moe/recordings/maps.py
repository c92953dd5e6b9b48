"""Maps of slots to experts, as engines take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim.errors import TraceError
from sim.moe.expert_map import Integers
from sim.moe.recordings.content import as_slots, json_of, read_bytes
from sim.yamlfile import read_yaml

__all__ = ["read_map"]


def read_map(path: Path) -> Integers:
    """Return the expert of every slot, shape (layers, slots).

    Raises
    ------
    TraceError
        The file is none of: TensorRT-LLM's YAML with ``initial_global_assignments``, vLLM-Ascend's JSON with
        ``layer_list``, JSON with ``physical_to_logical``.
    """
    if path.suffix in (".yaml", ".yml"):
        return as_slots(_tensorrt_llm(read_yaml(path, TraceError).data, path), path)
    data = json_of(read_bytes(path), path)
    if isinstance(data, dict) and "physical_to_logical" in data:
        return as_slots(data["physical_to_logical"], path)
    if isinstance(data, dict) and "layer_list" in data:
        return as_slots(_ascend(data["layer_list"], path), path)
    raise TraceError("has neither 'layer_list' nor 'physical_to_logical'", file=str(path))


def _tensorrt_llm(data: dict[str, Any], path: Path) -> list[Any]:
    """``initial_global_assignments: {layer: [expert of each slot]}``; layers are numbers of the whole model."""
    assignments = data.get("initial_global_assignments")
    if not isinstance(assignments, dict) or not all(layer.isdecimal() for layer in assignments):
        raise TraceError("initial_global_assignments: {layer: [experts]} is wanted", file=str(path))
    return [assignments[layer] for layer in sorted(assignments, key=int)]


def _ascend(layers: Any, path: Path) -> list[Any]:
    """``[{layer_id, device_list: [{device_id, device_expert: [experts]}]}]``."""
    try:
        in_order = sorted(layers, key=lambda layer: int(layer["layer_id"]))
        devices = [sorted(layer["device_list"], key=lambda device: int(device["device_id"])) for layer in in_order]
        return [[expert for device in row for expert in device["device_expert"]] for row in devices]
    except (TypeError, LookupError, ValueError, OverflowError):
        raise TraceError("layer_list with layer_id, device_list, device_expert is wanted", file=str(path)) from None
