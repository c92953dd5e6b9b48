"""A file read once, and seen as JSON or YAML objects, as tables, or as text. It is plain data: nothing is executed."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from calibration.reading.record import Record
from sim.errors import TraceError
from sim.yamlfile import parse_yaml

__all__ = ["Content", "Table", "read_content"]

MAX_BYTES = 256 << 20
MAX_YAML_CHARACTERS = 8 << 20  # YAML is read by Python itself, some 0.2 MB/s
_GZIP = b"\x1f\x8b"
_YAML = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n|---[ \t]*\r?\n)*[A-Za-z_][\w.-]*:(?:\s|$)")
_VALUE = re.compile(r"[^\s,]")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # what a Windows shell writes that redirects a program's output
_RULE = frozenset("|:- ")  # what the line below the header of a Markdown table is made of


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below one header.

    Attributes
    ----------
    lines
        Line of each row in the file, from 1.
    """

    file: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    def has(self, *columns: str) -> bool:
        """Tell whether all *columns* are in the header."""
        return set(columns) <= set(self.header)

    @property
    def records(self) -> Iterator[Record]:
        """The rows; raises a `TraceError` for one with more or fewer cells than the header."""
        for row, line in zip(self.rows, self.lines, strict=True):
            if len(row) != len(self.header):
                wrong = f"{len(row)} cells below a header of {len(self.header)}"
                raise TraceError(wrong, file=self.file, line=line)
            yield Record(dict(zip(self.header, row, strict=True)), self.file, line)


@dataclass(frozen=True)
class Content:
    """One file."""

    file: str
    text: str

    @cached_property
    def objects(self) -> tuple[Record, ...]:
        """All JSON objects, whether alone, in a list, one a line or one after another; or the YAML mapping."""
        with suppress(TraceError):
            return tuple(self._parsed())
        return ()

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """Tables of values between commas, tabs or semicolons; an empty line ends one, ``#`` lines above are none."""
        if self._is_json:
            return ()
        with suppress(csv.Error):
            return tuple(self._delimited())
        return ()

    @cached_property
    def markdown_tables(self) -> tuple[Table, ...]:
        """Tables drawn with ``|``."""
        return tuple(self._markdown())

    @cached_property
    def lines(self) -> list[str]:
        """The lines; what a carriage return overwrote on a terminal is a line of its own."""
        return self.text.splitlines()

    def refusal(self, known: str) -> TraceError:
        """Return why nothing could be made of it; *known* lists what could have been."""
        try:
            keys = sorted({key for record in self._parsed() for key in record.data})
        except TraceError as problem:
            return problem
        seen = f"an object with the keys {', '.join(keys[:8])}" if keys else self._description()
        return TraceError(f"holds no result of a known tool, but {seen}; known: {known}", file=self.file)

    @property
    def _is_json(self) -> bool:
        return self.text.lstrip()[:1] in ("{", "[")

    def _description(self) -> str:
        if self.tables and len(self.tables[0].header) > 1:
            return f"a table with the columns {', '.join(self.tables[0].header[:8])}"
        return f"{len(self.lines)} lines of text" if len(self.lines) > 1 else "a line of text"

    def _parsed(self) -> Iterator[Record]:
        if self._is_json:
            yield from self._json()
        elif _YAML.match(self.text):
            if len(self.text) > MAX_YAML_CHARACTERS:
                raise TraceError(f"is YAML of more than {MAX_YAML_CHARACTERS >> 20} MiB", file=self.file)
            yield Record(parse_yaml(self.text, self.file, TraceError).data, self.file)

    def _json(self) -> Iterator[Record]:
        decoder, position, line = json.JSONDecoder(), 0, 1
        while rest := _VALUE.search(self.text, position):
            line += self.text.count("\n", position, rest.start())
            value, end = self._decoded(decoder, rest.start(), line)
            items = value if isinstance(value, list) else [value]
            yield from (Record(item, self.file, line) for item in items if isinstance(item, dict))
            line, position = line + self.text.count("\n", rest.start(), end), end

    def _decoded(self, decoder: json.JSONDecoder, start: int, line: int) -> tuple[Any, int]:
        try:
            return decoder.raw_decode(self.text, start)
        except json.JSONDecodeError as problem:
            ended = problem.pos >= len(self.text.rstrip()) or problem.msg.startswith("Unterminated string")
            why = f"{problem.msg}, where the file ends: is it cut short?" if ended else problem.msg
            raise TraceError(f"is not JSON: {why}", file=self.file, line=problem.lineno) from None
        except RecursionError:
            raise TraceError("is nested too deeply", file=self.file, line=line) from None
        except ValueError:  # a whole number of thousands of digits
            raise TraceError("holds a number that is too long", file=self.file, line=line) from None

    def _delimited(self) -> Iterator[Table]:
        head = next((line for line in self.lines if line.strip() and not line.startswith("#")), "")
        delimiter = "\t" if "\t" in head else max(",;", key=head.count)
        reader = csv.reader(io.StringIO(self.text), delimiter=delimiter)
        header: tuple[str, ...] = ()
        rows: list[tuple[str, ...]] = []
        lines: list[int] = []
        for row in reader:
            if not header and (not row or row[0].startswith("#")):
                continue
            if row and header:
                rows.append(tuple(row))
                lines.append(reader.line_num)
            elif row:
                header = tuple(cell.strip() for cell in row)
            else:
                yield Table(self.file, header, tuple(rows), tuple(lines))
                header, rows, lines = (), [], []
        if header:
            yield Table(self.file, header, tuple(rows), tuple(lines))

    def _markdown(self) -> Iterator[Table]:
        numbered = ((number, line.strip()) for number, line in enumerate(self.lines, 1))
        for drawn, block in itertools.groupby(numbered, key=lambda item: item[1].startswith("|")):
            (_, head), *body = list(block)
            if drawn and body and set(body[0][1]) <= _RULE:
                rows = tuple(_cells(line) for _, line in body[1:])
                yield Table(self.file, _cells(head), rows, tuple(number for number, _ in body[1:]))


def read_content(path: str | Path) -> Content:
    """Read a file of text, gzipped or not; every way to fail raises a `TraceError` in one line."""
    try:
        with Path(path).open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise TraceError(f"cannot be read: {reason}", file=str(path)) from None
    content = _gunzipped(raw, str(path)) if raw.startswith(_GZIP) else raw
    if len(content) > MAX_BYTES:
        raise TraceError(f"is larger than {MAX_BYTES >> 20} MiB", file=str(path))
    text = _decoded(content, str(path))
    if not text.strip():
        raise TraceError("is empty", file=str(path))
    return Content(str(path), text)


def _decoded(content: bytes, file: str) -> str:
    """Return the text without a terminal's colours, its lines ended as everywhere here."""
    try:
        text = content.decode("utf-16" if content.startswith(_UTF16) else "utf-8-sig")
    except UnicodeDecodeError:
        raise TraceError("is not UTF-8 text", file=file) from None
    return _COLOUR.sub("", text).replace("\r\n", "\n")


def _gunzipped(raw: bytes, file: str) -> bytes:
    """Return what *raw* unpacks to, but not much more than is allowed: a small file may unpack to terabytes."""
    unpacker, content = zlib.decompressobj(wbits=31), bytearray()
    try:
        while raw and len(content) <= MAX_BYTES:
            content += unpacker.decompress(raw, MAX_BYTES + 1 - len(content))
            raw = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            if unpacker.eof and raw:  # several members may follow one another
                unpacker = zlib.decompressobj(wbits=31)
    except zlib.error:
        raise TraceError("is a broken gzip file", file=file) from None
    if not unpacker.eof and len(content) <= MAX_BYTES:
        raise TraceError("is a gzip file without its end", file=file)
    return bytes(content)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip("|").split("|"))
