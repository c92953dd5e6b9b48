"""Real files, cut to a size that a parser reads in a millisecond."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["ROOT", "SHARED", "arrays", "npy", "run_folder", "safetensors", "small"]

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
"""Published files beside the repository; without them the shipped ones have to do."""
_LONGEST = 6000


def small(paths: Iterable[Path], longest: int = _LONGEST) -> list[bytes]:
    """Return the content of *paths*, unpacked and shortened."""
    return [_shortened(_unpacked(path), longest) for path in sorted(paths) if path.is_file()]


def anonymous(contents: Iterable[bytes]) -> list[bytes]:
    """Return profiles with the name of the file that they will be read from."""
    return [re.sub(rb"^name: .*", b"name: x", content, count=1, flags=re.MULTILINE) for content in contents]


def _unpacked(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def _shortened(content: bytes, longest: int) -> bytes:
    if len(content) <= longest:
        return content
    try:
        tree = json.loads(content)
    except ValueError:
        return content[: content.rfind(b"\n", 0, longest) + 1 or longest]
    return json.dumps(_trimmed(tree), ensure_ascii=False).encode()


def _trimmed(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _trimmed(value) for key, value in list(tree.items())[:60]}
    return [_trimmed(value) for value in tree[:3]] if isinstance(tree, list) else tree


def npy() -> list[bytes]:
    """Return arrays of loads as ``.npy``."""
    shapes: list[Any] = [np.ones((2, 8)), np.ones((3, 2, 8), dtype=np.int32), np.arange(4), np.array(3.0)]
    return [_saved(array) for array in shapes]


def _saved(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def arrays() -> list[bytes]:
    """Return archives of named arrays, as SGLang and vLLM write them."""
    held = np.arange(16).reshape(2, 8) % 6
    found: list[dict[str, Any]] = [
        {"logical_count": np.ones((4, 2, 8), dtype=np.int64)},
        {"expert_load_window": np.ones((4, 2, 8)), "physical_to_logical_map": held},
    ]
    contents = []
    for named in found:
        stream = io.BytesIO()
        np.savez_compressed(stream, **named)
        contents.append(stream.getvalue())
    return contents


def safetensors() -> list[bytes]:
    """Return small files of tensors: the length of a header, the header, and data."""
    tensor = {"dtype": "I32", "shape": [8], "data_offsets": [0, 32]}
    headers: list[Any] = [{"0_3": tensor}, {"__metadata__": {"format": "pt"}, "w": {**tensor, "dtype": "BF16"}}]
    texts = [json.dumps(header).encode() for header in headers]
    return [len(text).to_bytes(8, "little") + text + bytes(32) for text in texts]


def run_folder(folder: Path) -> dict[str, bytes]:
    """Return the files of a small run by their names."""
    from sim.experiment import load_experiment
    from sim.report.run import write
    from sim.simulate import simulate

    experiment = load_experiment(ROOT / "experiments" / "8b_l40s_chat.yaml", ["workload.num_requests=8"])
    return {path.name: path.read_bytes() for path in write(simulate(experiment), folder)}
