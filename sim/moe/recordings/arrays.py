"""Named arrays, as SGLang's recorder and vLLM's load balancer keep them: ``.npz``, and ``.pt`` where torch is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sim.errors import TraceError
from sim.moe.expert_map import Floats
from sim.moe.recordings.content import MAX_BYTES, as_loads, as_slots

__all__ = ["loads_of_arrays", "read_npz", "read_pt"]

_MAX_ARRAYS = 2**12


def loads_of_arrays(arrays: Mapping[str, Any], path: Path) -> Floats:
    """Return the loads of experts, shape (layers, experts).

    * SGLang ``stat``: ``logical_count`` of steps x layers x experts. Its buffer is circular, so steps are in no order
      and unused ones are zero; the sum over steps does not care.
    * SGLang ``per_pass``: ``records`` with ``global_physical_count`` each, and ``last_physical_to_logical_map``.
    * vLLM: ``expert_load_window`` of steps x layers x slots, and ``physical_to_logical_map``.
    """
    if "logical_count" in arrays:
        return as_loads(arrays["logical_count"], path)
    if "expert_load_window" in arrays:
        slots, held = arrays["expert_load_window"], arrays.get("physical_to_logical_map")
    elif "records" in arrays:
        slots = _counts(arrays["records"], path)
        held = arrays.get("last_physical_to_logical_map")
    else:
        raise TraceError("has none of logical_count, expert_load_window, records", file=str(path))
    if held is None:
        raise TraceError("loads of slots, without the map of slots to experts", file=str(path))
    return _by_expert(as_loads(slots, path), as_slots(held, path), path)


def _counts(records: Any, path: Path) -> list[Any]:
    try:
        return [record["global_physical_count"] for record in records]
    except (TypeError, LookupError):
        raise TraceError("records with global_physical_count are wanted", file=str(path)) from None


def _by_expert(slots: Floats, held: Any, path: Path) -> Floats:
    if slots.shape != held.shape:
        raise TraceError(f"loads of {slots.shape} layers and slots, a map of {held.shape}", file=str(path))
    loads = np.zeros((len(slots), int(held.max()) + 1))
    np.add.at(loads, (np.arange(len(slots))[:, None], held), slots)
    return loads


def read_npz(path: Path) -> Floats:
    """Return the loads in an archive of arrays; raise `TraceError` if it has none."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            _refuse_bombs(archive, path)
            arrays = {name: archive[name] for name in archive.files}
    except TraceError:
        raise
    except OSError as problem:
        raise TraceError(f"cannot be read: {problem.strerror or problem}", file=str(path)) from None
    except Exception:
        raise TraceError("is no .npz archive of numbers", file=str(path)) from None
    return loads_of_arrays(arrays, path)


def _refuse_bombs(archive: Any, path: Path) -> None:
    members = archive.zip.infolist()
    if len(members) > _MAX_ARRAYS or sum(member.file_size for member in members) > MAX_BYTES:
        raise TraceError(f"unpacks to more than {MAX_BYTES >> 20} MiB", file=str(path))


def read_pt(path: Path) -> Floats:
    """Return the loads in what torch saved; nothing but tensors and plain values is loaded from it."""
    try:
        import torch
    except ImportError:
        raise TraceError("torch reads .pt files: install it, or save the arrays as .npz", file=str(path)) from None
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as problem:
        raise TraceError(f"cannot be read: {problem.strerror or problem}", file=str(path)) from None
    except Exception as problem:
        raise TraceError(f"torch cannot load it: {problem}", file=str(path)) from None
    if not isinstance(saved, dict):
        raise TraceError("holds no named arrays", file=str(path))
    return loads_of_arrays(saved, path)
