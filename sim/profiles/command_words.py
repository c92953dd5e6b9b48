"""Takes the command line of an engine's server apart: its flags and their values, in the forms that servers read."""

from __future__ import annotations

import json
import re
import shlex
from collections import deque
from collections.abc import Iterator, Sequence

from sim.profiles.flags import FlagTable, spelling

__all__ = ["flags_among", "plain_flag"]

_FLAG = re.compile(r"-{1,2}[A-Za-z]")
_SHORT = re.compile(r"-[A-Za-z](?=[^-])")
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")


def flags_among(words: str | Sequence[str], table: FlagTable) -> Iterator[tuple[str, str | None]]:
    """Yield each flag and its value, None where it has none; what stands before all flags is MODEL.

    A line may go on after a backslash.
    """
    rest = deque(shlex.split(words.replace("\\\n", " ")) if isinstance(words, str) else words)
    for word in _command(rest, table):
        yield from _variable(word, table)
    while rest:
        word = rest.popleft()
        name, equals, value = _parted(word, table)
        if not _FLAG.match(word):
            yield from _variable(word, table) if _VARIABLE.match(word) else [("MODEL", word)]
        elif equals:
            yield from _keyed(name, value, table)
        elif _takes_none(name, table):
            yield name, None
        else:
            values = []
            while rest and not _FLAG.match(rest[0]):
                values.append(rest.popleft())
            yield from _keyed(name, " ".join(values), table) if values else [(name, None)]


def _variable(word: str, table: FlagTable) -> Iterator[tuple[str, str]]:
    """Yield the flag that a variable of the environment stands for, if *word* sets one."""
    name, equals, value = word.partition("=")
    if not equals:
        return
    flag = table.of_variable(name)
    if flag is None:
        raise ValueError(f"{word}: this variable of the environment is not modelled")
    yield flag, value


def _parted(word: str, table: FlagTable) -> tuple[str, str, str]:
    """Return the flag of *word*, an equals sign if its value is in the word, too, and that value.

    A flag of one letter may have its value attached, as in ``-O3``, where the server takes that.
    """
    short = _SHORT.match(word) if table.attached else None
    if short and not table.has(word.partition("=")[0]) and table.has(short[0]):
        return short[0], "=", word[2:].removeprefix("=")
    return word.partition("=")


def _keyed(name: str, value: str, table: FlagTable) -> Iterator[tuple[str, str]]:
    """Yield the keys of a JSON object as flags of their own, as if written ``--flag.key``."""
    if spelling(name) not in table.keyed or not value.startswith("{"):
        yield name, value
        return
    try:
        keys = json.loads(value)
    except ValueError:
        raise ValueError(f"{name}: {value} is not JSON") from None
    for key, each in keys.items():
        if each is not None:
            yield f"{name}.{key}", each if isinstance(each, str) else json.dumps(each)


def _command(rest: deque[str], table: FlagTable) -> list[str]:
    """Take the command off *rest*, and variables of the environment before it; return the words that were taken."""
    taken = []
    while rest and _VARIABLE.match(rest[0]):
        taken.append(rest.popleft())
    if len(rest) > 2 and rest[0] in ("python", "python3") and rest[1] == "-m":
        taken += [rest.popleft() for _ in range(3)]
    while rest and rest[0] in table.command.split():
        taken.append(rest.popleft())
    return taken


def _takes_none(name: str, table: FlagTable) -> bool:
    flag = table.by_name.get(spelling(plain_flag(name, table)))
    return flag is not None and flag.on is not None


def plain_flag(name: str, table: FlagTable) -> str:
    """Return the flag that *name* is a form of: with ``no-``, or with a key after a dot."""
    forms = (name, re.sub(r"^(--?)no-", r"\1", name), name.partition(".")[0])
    return next((form for form in forms if table.has(form)), name)
