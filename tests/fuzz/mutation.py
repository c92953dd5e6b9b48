"""Real files made hostile: by bytes, by words, by lines, by structure."""

from __future__ import annotations

import copy
import gzip
import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

__all__ = ["HOSTILE", "mutate"]

HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 1.5, -0.0, 1e-320, 1e308, -1e308, 10**6, 2**31, 2**63, 10**30, 10**400),
    *(float("nan"), float("inf"), float("-inf"), "", " ", "a", "nan", "inf", "-1", "1e999", "0x10", "1_000", "\0"),
    *("../../etc/passwd", "/etc/passwd", "/dev/zero", "/proc/self/mem", "/", ".", "..", "~", "~nobody-here", "a/b.c"),
    *("x.json", "x.yaml", "con", "*", "[", "**", "%s%n", "{0}", "${HOME}", "$(id)", "`id`", "__import__('os')"),
    *(
        "!!python/object/apply:os.system [id]",
        "é",
        "\ud800",
        "\u202e",
        "\ufeff",
        "\U0001d518" * 30,
        "a" * 5000,
        "9" * 5000,
    ),
    *([], {}, [[]], [{}], [None], {"": None}, {"a": 1}, {"kind": "x"}, [1, 2, 3], [0.5], [[1, 2], [3, 4]], ["a"]),
)
_TEXTS = tuple(value for value in HOSTILE if isinstance(value, str))
_TOKEN = re.compile(rb'"[^"\n]*"|[\w.+-]+')
_BYTES = (
    *(
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\r",
        b"\r\n",
        b"\t",
        b"\n\n",
        b"\x85",
        b"\xe2\x80\xa8",
    ),
    *(b"{", b"}", b"[", b"]", b",", b":", b": ", b"- ", b"? ", b"&a ", b"*a", b"<<: ", b"!!", b"!x ", b"|", b">", b"#"),
    *(b'"', b"'", b"\\", b"\\ud800", b"%", b"@", b"---\n", b"...\n", b"NaN", b"-Infinity", b"1e999", b"9" * 5000),
)


def mutate(random: Random, content: bytes, others: Sequence[bytes]) -> bytes:
    """Return *content* with one to six faults in it; *others* are files to take pieces from."""
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 6))):
        content = random.choice(_MUTATIONS)(random, content, random.choice(others))
    if random.random() < 0.01:
        content = gzip.compress(content, 1, mtime=0)
        if random.random() < 0.5:
            content = _flip(random, content, b"")
    return content[: 2**18]


def _flip(random: Random, content: bytes, _other: bytes) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 4, 16))):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _insert(random: Random, content: bytes, _other: bytes) -> bytes:
    at = random.randint(0, len(content))
    return content[:at] + random.choice(_BYTES) * random.choice((1, 1, 1, 2, 100)) + content[at:]


def _cut(random: Random, content: bytes, _other: bytes) -> bytes:
    begin = random.randint(0, len(content))
    end = begin + random.choice((1, 4, 64, len(content)))
    return content[:begin] + content[end:]


def _splice(random: Random, content: bytes, other: bytes) -> bytes:
    begin = random.randint(0, len(other))
    piece = other[begin : begin + random.choice((8, 64, 512))]
    at = random.randint(0, len(content))
    return content[:at] + piece + content[at + random.choice((0, len(piece))) :]


def _token(random: Random, content: bytes, other: bytes) -> bytes:
    """Put something else in the place of a word or a number."""
    found = list(_TOKEN.finditer(content))
    if not found:
        return content
    match = random.choice(found)
    return content[: match.start()] + _word(random, other) + content[match.end() :]


def _word(random: Random, other: bytes) -> bytes:
    if random.random() < 0.3 and (words := _TOKEN.findall(other)):
        return bytes(random.choice(words))
    value = random.choice(HOSTILE)
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) and random.random() < 0.5 else _json(value)


def _lines(random: Random, content: bytes, other: bytes) -> bytes:
    """Repeat, drop, swap, indent or borrow a line."""
    lines = content.split(b"\n")
    at, to = random.randrange(len(lines)), random.randrange(len(lines))
    match random.randrange(6):
        case 0:
            lines.insert(to, lines[at])
        case 1:
            del lines[at]
        case 2:
            lines[at], lines[to] = lines[to], lines[at]
        case 3:
            lines[at] = b" " * random.choice((1, 2, 4)) + lines[at]
        case 4:
            lines[at] = lines[at].lstrip()
        case _:
            lines.insert(to, random.choice(other.split(b"\n")))
    return b"\n".join(lines)


def _structure(random: Random, content: bytes, other: bytes) -> bytes:
    """Change the tree of a JSON document, or of one line of it; of other files a token."""
    lines = content.split(b"\n")
    for whole in (True, False):
        at = random.randrange(len(lines))
        try:
            tree = json.loads(content if whole else lines[at])
        except (ValueError, RecursionError):
            continue
        changed = _json(changed_tree(random, tree))
        return changed if whole else b"\n".join((*lines[:at], changed, *lines[at + 1 :]))
    return _token(random, content, other)


def changed_tree(random: Random, tree: Any) -> Any:
    """Return *tree* with a value replaced, dropped, wrapped, renamed or borrowed from elsewhere in it."""
    holder = {"": copy.deepcopy(tree)}
    places = list(_places(holder))
    parent, key = random.choice(places)
    match random.randrange(7):
        case 0:
            del parent[key]
        case 1:
            other, from_ = random.choice(places)
            parent[key] = copy.deepcopy(other[from_]) if from_ in other or isinstance(from_, int) else None
        case 2:
            parent[key] = [parent[key]] * random.choice((1, 2, 50))
        case 3 if isinstance(parent, dict):
            parent[random.choice(_TEXTS)] = parent.pop(key)
        case _:
            parent[key] = copy.deepcopy(random.choice(HOSTILE))
    return holder.get("")


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Return every place in *tree*, as container and key; of long lists the first and last few."""
    found: list[tuple[Any, Any]] = []
    ahead = [tree]
    while ahead and len(found) < 3000:
        node = ahead.pop()
        keys = list(node) if isinstance(node, dict) else [*range(min(len(node), 5))]
        found += ((node, key) for key in keys)
        ahead += (node[key] for key in keys if isinstance(node[key], dict | list))
    return found


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


_MUTATIONS: tuple[Callable[[Random, bytes, bytes], bytes], ...] = (
    *(_flip, _insert, _cut, _splice, _lines),
    *(_token, _token, _token, _structure, _structure, _structure, _structure),
)
