"""A file of records, gzipped or not, none of which is trusted: what is read at a time is bounded."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO

from sim.errors import TraceError
from sim.workload.traces.row import Record

__all__ = ["RecordFile"]

MAX_CHARACTERS = 16 << 20
"""Longest line, or object of an array."""
MOST_TIMES = 50
"""By which a gzipped trace shrinks at most: rows of numbers do 5 to 20 times."""
ALWAYS_UNPACKED = 4 << 20
_CHUNK = 1 << 16
_GZIP_MAGIC = b"\x1f\x8b"
_NO_SPACE = re.compile(r"[ \t\n\r]*")
_TOO_LONG = f"a line or an object of more than {MAX_CHARACTERS >> 20} million characters"


class RecordFile:
    """A text file of records that knows the line it is at; all problems are `TraceError`."""

    def __init__(self, path: Path) -> None:
        self.path, self.line = path, 1

    def records(self) -> Iterator[Record]:
        """Yield the records of JSON Lines, a JSON array or CSV, told apart by the first character."""
        try:
            with self.path.open("rb") as raw:
                stream = _as_text(raw)
                head = self._head(stream)
                match head.lstrip()[:1]:
                    case "[":
                        yield from self._json_array(_Ahead(stream, head))
                    case "{":
                        yield from self._json_lines(self._lines(stream, head))
                    case _:
                        yield from self._csv(self._lines(stream, head))
        except UnicodeDecodeError as problem:
            raise TraceError(f"not a text file in UTF-8: {problem.reason}", file=str(self.path)) from None
        except (OSError, EOFError, zlib.error) as problem:
            raise TraceError(_reason(problem), file=str(self.path)) from None

    def _head(self, stream: TextIO) -> str:
        """Return the begin of the file, with something in it that is not blank, if anything is."""
        head, chunk = "", stream.read(_CHUNK)
        while chunk and not chunk.strip():
            head += chunk
            if len(head) > MAX_CHARACTERS:
                self._fail(_TOO_LONG)
            chunk = stream.read(_CHUNK)
        return head + chunk

    def _lines(self, stream: TextIO, head: str) -> Iterator[str]:
        begin = io.StringIO(head + stream.readline(MAX_CHARACTERS), newline="")
        every = itertools.chain(_lines_of(begin), _lines_of(stream))
        for self.line, line in enumerate(every, start=1):
            if len(line) >= MAX_CHARACTERS:
                self._fail(_TOO_LONG)
            yield line

    def _json_lines(self, lines: Iterator[str]) -> Iterator[Record]:
        for line in lines:
            if line.strip():
                record = self._decoded(line)
                if not isinstance(record, dict):
                    self._fail("expected one JSON object a line")
                yield record

    def _json_array(self, ahead: _Ahead) -> Iterator[Record]:
        """Yield the objects of an array that is the whole file; `line` then counts them."""
        ahead.skip()
        mark, self.line = ahead.take(), 0
        while mark != "]":
            self.line += 1
            mark = ahead.skip()
            if mark == "]" and self.line == 1:
                break
            if mark != "{":
                self._fail("expected one JSON object after the other" if mark else "not JSON: the array does not end")
            yield self._next_object(ahead)
            ahead.skip()
            mark = ahead.take()
            if mark not in (",", "]"):
                self._fail(f"not JSON: {mark or 'nothing'!r} where a comma or the end of the array is wanted")
        # What follows the array is not looked at.

    def _next_object(self, ahead: _Ahead) -> Record:
        while True:
            try:
                record, text = ahead.decoded()
            except json.JSONDecodeError as problem:
                if not ahead.more():  # else the object may end in what comes next
                    self._fail(f"not JSON: {problem.msg}" + ("" if ahead.ended else f", or {_TOO_LONG}"))
            except (ValueError, RecursionError) as problem:
                self._fail(f"not JSON: {problem}")
            else:
                self._refuse_halves(text, record)
                return record

    def _decoded(self, line: str) -> Any:
        try:
            record = _DECODER.decode(line)
        except (ValueError, RecursionError) as problem:
            self._fail(f"not JSON: {problem}")
        self._refuse_halves(line, record)
        return record

    def _refuse_halves(self, text: str, record: Any) -> None:
        """Refuse half of a surrogate pair in *record*, read from *text*: it could not be written again."""
        if "\\ud" not in text.casefold():
            return
        try:
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError as problem:
            self._fail(f"not JSON: {problem}")

    def _csv(self, lines: Iterator[str]) -> Iterator[Record]:
        header: list[str] = []
        try:
            for cells in csv.reader(lines, strict=True):
                if not any(cells):
                    continue
                if not header:
                    header = [cell.strip() for cell in cells]
                    if twice := {column for column in header if column and header.count(column) > 1}:
                        self._fail(f"column {min(twice)!r} is there twice")
                    continue
                if len(cells) != len(header):
                    self._fail(f"{len(cells)} cells under a header of {len(header)}")
                yield {column: cell or None for column, cell in zip(header, cells, strict=True)}
        except csv.Error as problem:
            self._fail(f"not CSV: {problem}")

    def _fail(self, message: str) -> NoReturn:
        raise TraceError(message, file=str(self.path), line=self.line)


class _Ahead:
    """Text of which only the next object is held."""

    def __init__(self, stream: TextIO, head: str) -> None:
        self._stream, self._text, self._at = stream, head, 0
        self.ended = False

    def skip(self) -> str:
        """Go to the next character that is no space and return it; an empty text at the end."""
        while True:
            self._at = _NO_SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]  # matches anything
            if self._at < len(self._text) or not self.more():
                return self._text[self._at : self._at + 1]

    def take(self) -> str:
        """Return the next character, and go on behind it."""
        self._at += 1
        return self._text[self._at - 1 : self._at]

    def decoded(self) -> tuple[Record, str]:
        """Return the JSON object that begins here, with its text, and go on behind it."""
        begin = self._at
        value, self._at = _DECODER.raw_decode(self._text, begin)
        return value, self._text[begin : self._at]

    def more(self) -> bool:
        """Hold twice as much; return False at the end of the text, or where that is more than any object has."""
        held = len(self._text) - self._at
        if held > MAX_CHARACTERS:
            return False
        chunk = self._stream.read(max(held, _CHUNK))
        self._text, self._at, self.ended = self._text[self._at :] + chunk, 0, not chunk
        return bool(chunk)


class _Unpacked(io.RawIOBase):
    """What a gzip file holds, until that is more than a file of its size does: a small one may hold terabytes."""

    def __init__(self, packed: BinaryIO) -> None:
        self._stream = gzip.GzipFile(fileobj=packed)
        self._left = max(ALWAYS_UNPACKED, MOST_TIMES * os.fstat(packed.fileno()).st_size)

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill *buffer*; raise an `OSError` for a bomb."""
        count = self._stream.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise OSError(f"it is {MOST_TIMES} times as large, as no trace is; unpack it yourself if you trust it")
        return count


def _as_text(raw: BinaryIO) -> TextIO:
    packed = raw.read(2) == _GZIP_MAGIC
    raw.seek(0)
    content: Any = io.BufferedReader(_Unpacked(raw)) if packed else raw
    return io.TextIOWrapper(content, encoding="utf-8-sig", newline="")


def _lines_of(stream: TextIO) -> Iterator[str]:
    return iter(lambda: stream.readline(MAX_CHARACTERS), "")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _reason(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        return f"cannot be read: {problem.strerror}"
    return f"cannot be unpacked: {problem}"
