"""Reads an engine's command line into the fields of an experiment that it stands for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sim.errors import ProfileError, did_you_mean
from sim.profiles.command_words import flags_among, plain_flag
from sim.profiles.engine import LATEST
from sim.profiles.flag_values import fields_meant
from sim.profiles.flags import FlagTable, ModelledFlag, spelling
from sim.profiles.folders import names
from sim.profiles.library import load_engine, load_flags
from sim.yamlfile import Document
from sim.yamlfile.document import PathTuple

__all__ = ["fields_of", "ignored", "with_flags"]

_SCHEDULER = "engine.scheduler."


def with_flags(document: Document) -> Document:
    """Return an experiment's *document* with the fields that its ``engine.flags``, and those of pools, stand for.

    Of the flags those are left that stand for no field: what is changed later is changed in the fields. Raise its error
    where a flag is unknown or refused, or where a field is written as well, with another value.
    """
    pools = document.data.get("pools")
    for place in range(len(pools) if isinstance(pools, list) else 0):
        _refuse_other_engine(document, ("pools", place, "engine"))
        document = _expanded(document, ("pools", place))
    return _expanded(document, ())


def _refuse_other_engine(document: Document, pool: PathTuple) -> None:
    """Raise an error where the engine of a *pool*, without flags of its own, is not the one that flags are of."""
    flags, kind = document.value_at(("engine", "flags"), None), document.value_at(("engine", "kind"), "vllm")
    own = document.value_at((*pool, "flags"), None)
    if flags and own is None and document.value_at((*pool, "kind"), kind) != kind:
        raise document.error((*pool, "kind"), f"engine.flags are those of {kind}: give the pool flags of its own")


def ignored(words: str | Sequence[str], engine: str, beside: Path) -> dict[str, list[str]]:
    """Return the flags of *engine* among *words* that change nothing, by the reason."""
    if not words:
        return {}
    table, found = _table(engine, beside), dict[str, list[str]]()
    last = _last(words, table)
    for name, _ in flags_among(words, table):
        plain = spelling(plain_flag(name, table))
        lacked = table.by_name[plain].lacks(last) if plain in table.by_name else ""
        refused, why = table.reasons.get(plain, (not lacked, f"without {lacked} it has none"))
        if not refused:
            found.setdefault(why, []).append(name)
    return found


def fields_of(words: str | Sequence[str], table: FlagTable) -> dict[str, Any]:
    """Return the dotted path and value of every field that *words*, a command line, stand for.

    Of a flag that is there twice the last counts; of two flags for one field the one that is later in *table*. Raise a
    `ValueError` that names the flag which is unknown, refused or wrong.
    """
    found: dict[str, tuple[int, Any]] = {}
    paired: dict[str, tuple[str, Any]] = {}
    last = _last(words, table)
    for name, value in flags_among(words, table):
        plain = plain_flag(name, table)
        flag = table.by_name.get(spelling(plain))
        default = table.is_default(plain, _said(name, plain, value))
        if flag is None:
            if not default:
                _refuse(plain, table)
            continue
        left_out = default or value in table.missing
        negated = _is_negated(name, plain)
        if plain != name and not negated and not flag.write:
            _refuse(name, table)  # a key of a flag that has none
        fields = {flag.field: None} if left_out else fields_meant(flag, name, value, negated=negated)
        if flag.lacks(last):
            continue
        place = table.modelled.index(flag)
        for field in flag.fields:
            if found.get(field, (place, None))[0] == place:
                found.pop(field, None)
        for field, meant in fields.items():
            if meant is not None and place >= found.get(field, (0, None))[0]:
                found[field] = place, meant
        if flag.beside is not None:
            meant = fields[flag.field]
            paired[flag.names[0]] = flag.beside, meant
    for name, (beside, meant) in paired.items():
        if paired.get(beside, (name, None)) != (name, meant):
            raise ValueError(f"{name}: {beside} has to say the same, since both are one field")
    return {field: meant for field, (_, meant) in found.items()}


def _modelled(words: str | Sequence[str], table: FlagTable) -> Iterator[tuple[ModelledFlag, str, str | None]]:
    """Yield each flag among *words* that a field stands for, as it is written, and its value."""
    for name, value in flags_among(words, table):
        plain = plain_flag(name, table)
        flag = table.by_name.get(spelling(plain))
        if flag is not None:
            yield flag, name, _said(name, plain, value)


def _last(words: str | Sequence[str], table: FlagTable) -> dict[str, str | None]:
    """Return the value of each flag among *words* that a field stands for, the last of several, by its first name."""
    return {flag.names[0]: value for flag, _, value in _modelled(words, table)}


def _said(name: str, plain: str, value: str | None) -> str | None:
    """Return the *value* of the flag *plain*, which is false where *name* is its form with no-."""
    return "false" if value is None and _is_negated(name, plain) else value


def _is_negated(name: str, plain: str) -> bool:
    """Tell whether *name* is the form with no- of the flag *plain*, and not that with a key after a dot."""
    return name != plain and name.replace("no-", "", 1) == plain


def _without_fields(words: str | Sequence[str], table: FlagTable) -> list[str] | None:
    """Return those flags among *words* that stand for no field, or have no effect; None if there are none."""
    left, last = list[str](), _last(words, table)
    for name, value in flags_among(words, table):
        flag = table.by_name.get(spelling(plain_flag(name, table)))
        if flag is None or flag.lacks(last):
            left.append(name if value is None else f"{name}={value}")
    return left or None


def _expanded(document: Document, at: PathTuple) -> Document:
    place = (*at, "engine", "flags")
    words = document.value_at(place, None)
    engine = _engine(document, at)
    texts = [*words, engine] if isinstance(words, str | list) else [None]
    if not all(isinstance(text, str) for text in texts):
        return document  # nothing, or for the experiment's own checks to refuse
    beside = Path(document.file).resolve().parent
    try:
        table = _table(engine, beside)
        fields, left = fields_of(words, table), _without_fields(words, table)
    except ValueError as problem:
        raise document.error(place, str(problem)) from None
    except ProfileError as problem:
        if problem.file is not None:
            raise
        raise document.error(place, problem.message) from None
    _refuse_contradiction(document, at, place, table)
    unexpanded = document
    untold = f"{_SCHEDULER}kind" not in fields and any(field.startswith(_SCHEDULER) for field in fields)
    if untold and (kind := _scheduler(document, at, engine, beside)):
        fields = {f"{_SCHEDULER}kind": kind} | fields
    for field, value in fields.items():
        document = _written(document, at, field, value, place)
    if untold and not at:
        document = _rescheduled(document, unexpanded, beside)
    return document.replace(".".join(map(str, place)), left, *document.place_of(place))


def _engine(document: Document, at: PathTuple) -> Any:
    """Return the engine of the pool *at*, or outside of pools, as it is written."""
    return document.value_at((*at, "engine", "kind"), document.value_at(("engine", "kind"), "vllm"))


def _rescheduled(document: Document, unexpanded: Document, beside: Path) -> Document:
    """Return *document* with the scheduler of the experiment's flags in each pool whose release has another kind.

    The *unexpanded* one tells what is written from what flags stand for.
    """
    scheduler, pools = document.value_at(("engine", "scheduler"), None), unexpanded.data.get("pools")
    for place in range(len(pools) if isinstance(pools, list) else 0):
        pool: PathTuple = ("pools", place)
        own, engine = unexpanded.value_at((*pool, "engine", "scheduler"), None), _engine(unexpanded, pool)
        if own is not None or not isinstance(engine, str):
            continue
        kind = _scheduler(unexpanded, pool, engine, beside)
        if kind != scheduler["kind"]:
            path, file_line = f"pools.{place}.engine.scheduler", unexpanded.place_of(("engine", "flags"))
            document = document.replace(path, scheduler | {"kind": kind}, *file_line)
    return document


def _written(document: Document, at: PathTuple, field: str, value: Any, place: PathTuple) -> Document:
    """Return *document* with *value* in the *field*, which stands on the line of its flag."""
    path = _path(at, field)
    before = document.value_at(path, None)
    if before not in (None, value):
        raise document.error(place, f"says {field} {value}, where {before} is written: write one of them")
    file, line = document.place_of(place)
    return document.replace(".".join(map(str, path)), value, file, line)


def _refuse_contradiction(document: Document, at: PathTuple, place: PathTuple, table: FlagTable) -> None:
    """Raise an error where a field is written that the flags at *place* leave out, and do not leave open."""
    words = document.value_at(place, ())
    last = {flag.names[0]: (flag, name, text) for flag, name, text in _modelled(words, table)}
    for flag, name, text in last.values():
        before = document.value_at(_path(at, flag.field), None)
        if flag.contradicts(text, before):
            written = f"{flag.field} {before}"
            raise document.error(place, f"says {name} {text}, where {written} is written: write one of them")


def _path(at: PathTuple, field: str) -> PathTuple:
    """Return where the dotted *field* stands, in the pool *at* or outside of pools."""
    in_pool = field.removeprefix("deployment.") if at else field
    return (*at, *in_pool.split("."))


def _scheduler(document: Document, at: PathTuple, engine: str, beside: Path) -> str | None:
    """Return the scheduler that options *at* a place are of, None where it is written there.

    It is the one that a pool would have without them: the experiment's, or that of the engine's release.
    """
    where = ("engine", "scheduler", "kind")
    if document.value_at((*at, *where), None) is not None:
        return None
    if (inherited := document.value_at(where, None)) is not None:
        return str(inherited)
    version = document.value_at((*at, "engine", "version"), document.value_at(("engine", "version"), LATEST))
    try:
        return load_engine(engine, beside).at(str(version)).scheduler
    except ProfileError as problem:
        raise document.error((*at, "engine"), problem.message) from None


def _table(engine: str, beside: Path) -> FlagTable:
    """Return the flags of *engine*, or of the one that it puts a server around."""
    profile = load_engine(engine, beside)
    name, known = profile.behind or profile.name, names("flags", beside)
    if name not in known:
        raise ProfileError(f"{name} has no table of flags: write fields; {', '.join(known)} have one")
    return load_flags(name, beside)


def _refuse(name: str, table: FlagTable) -> None:
    """Raise a `ValueError` where the flag *name* is refused or unknown; else it changes nothing."""
    if spelling(name) not in table.reasons:
        hint = _of_another(name, table) or did_you_mean(name, table.names)
        raise ValueError(f"{table.command} {table.version} has no {name}{hint}")
    refused, why = table.reasons[spelling(name)]
    if refused:
        raise ValueError(f"{name} is refused: {why}")


def _of_another(name: str, table: FlagTable) -> str:
    """Return of which other engines the flag *name* is, and which of *table* stands for the same field, if any do."""
    tables = [load_flags(engine) for engine in names("flags") if engine != table.name]
    owners = [other for other in tables if other.has(name)]
    if not owners:
        return ""
    fields = {other.by_name[spelling(name)].field for other in owners if spelling(name) in other.by_name}
    own = [flag.names[0] for flag in table.modelled if flag.field in fields and not flag.write]
    here = f", here {' or '.join(own)}" if own else ""
    whose = " and ".join(f"{other.name}'s" for other in owners)
    return f": it is {whose}{here}"
