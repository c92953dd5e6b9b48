"""From a path to the JSON documents of a checkpoint; nothing that is read is ever executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sim.errors import ProfileError
from sim.paths import is_file, is_folder
from sim.profiles.huggingface.config import Config
from sim.profiles.safetensors import read_header

__all__ = ["Checkpoint", "open_checkpoint"]

CONFIG_LIMIT_BYTES = 8 * 2**20
"""A config.json with ignore lists of thousands of modules has 1 MB."""
INDEX_LIMIT_BYTES = 64 * 2**20
"""The index of a checkpoint with 100,000 tensors has 10 MB."""


class Checkpoint:
    """A config and what lies beside it.

    Attributes
    ----------
    config
        The whole config.json.
    quantization
        The separate `hf_quant_config.json` of NVIDIA's older checkpoints, or None.
    folder
        Where the tensors may lie; None when only a file was given that is not called config.json.
    """

    def __init__(self, config: Config, quantization: Config | None, folder: Path | None) -> None:
        self.config, self.quantization, self.folder = config, quantization, folder

    def tensor_bytes(self) -> float | None:
        """Return the bytes of all tensors, from an index or from safetensors headers; None if there are none."""
        if self.folder is None:
            return None
        index = self.folder / "model.safetensors.index.json"
        if index.is_file():
            metadata = _document(index, INDEX_LIMIT_BYTES).part("metadata")
            if metadata is not None and metadata.has("total_size"):
                return metadata.whole("total_size", most=10**15)
        shards = sorted(self.folder.glob("*.safetensors"))
        return float(sum(_tensor_bytes(shard) for shard in shards)) if shards else None


def open_checkpoint(path: Path) -> Checkpoint:
    """Open a config.json, a model folder, or an index or safetensors file that lies beside its config.json.

    Raises
    ------
    ProfileError
        If there is no such file, or it is not a JSON object of reasonable size.
    """
    folder: Path | None = None
    if is_folder(path) or path.name.endswith((".safetensors", ".index.json")):
        folder = path if is_folder(path) else path.parent
        path = folder / "config.json"
    elif path.name == "config.json":
        folder = path.parent
    config = _document(path, CONFIG_LIMIT_BYTES)
    companion = folder / "hf_quant_config.json" if folder else None
    quantization = _document(companion, CONFIG_LIMIT_BYTES) if companion and companion.is_file() else None
    return Checkpoint(config, quantization, folder)


def _document(path: Path, limit_bytes: int) -> Config:
    return Config(_object(_read(path, limit_bytes), path), str(path))


def _read(path: Path, limit_bytes: int) -> bytes:
    if not is_file(path):
        raise ProfileError("is not a file" if is_folder(path) else "there is no such file", file=str(path))
    try:
        with path.open("rb") as file:
            content = file.read(limit_bytes + 1)
    except OSError as error:
        raise ProfileError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    if len(content) > limit_bytes:
        raise ProfileError(f"is larger than {limit_bytes / 2**20:.0f} MiB, which no such file is", file=str(path))
    return content


def _object(content: bytes, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ProfileError(f"is not JSON: byte {error.start} is not UTF-8 text", file=str(path)) from error
    except json.JSONDecodeError as error:
        raise ProfileError(
            f"is not JSON: {error.msg}, column {error.colno}", file=str(path), line=error.lineno
        ) from error
    except (RecursionError, ValueError) as error:
        reason = (
            "it is nested too deeply" if isinstance(error, RecursionError) else "a number in it has too many digits"
        )
        raise ProfileError(f"is not a config: {reason}", file=str(path)) from error
    if not isinstance(data, dict):
        raise ProfileError(f"is not a JSON object but a {type(data).__name__}", file=str(path))
    return data


def _tensor_bytes(path: Path) -> int:
    """Return the bytes of the tensors of a safetensors file."""
    try:
        with path.open("rb") as file:
            length, content = read_header(file)
    except OSError as error:
        raise ProfileError(f"cannot be read: {error.strerror or error}", file=str(path)) from error
    if not content:
        raise ProfileError(f"is not a safetensors file: its header would have {length} bytes", file=str(path))
    header = _object(content, path)
    return sum(_extent(name, entry, path) for name, entry in header.items() if name != "__metadata__")


def _extent(name: str, entry: Any, path: Path) -> int:
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    match offsets:
        case [int(start), int(end)] if 0 <= start <= end:
            return end - start
    raise ProfileError("is not a safetensors entry with two data_offsets", file=str(path), path=name)
