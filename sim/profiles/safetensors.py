"""How a file of tensors begins: eight bytes with the length of its header, then that header in JSON."""

from __future__ import annotations

from typing import BinaryIO

__all__ = ["HEADER_LIMIT_BYTES", "read_header"]

HEADER_LIMIT_BYTES = 100_000_000
"""What the safetensors format itself allows."""


def read_header(file: BinaryIO) -> tuple[int, bytes]:
    """Return the length of the header that *file* states [bytes], and the header: nothing if it cannot be so long."""
    length = int.from_bytes(file.read(8), "little")
    return length, file.read(length) if 2 <= length <= HEADER_LIMIT_BYTES else b""
