"""From a document to a pydantic model, with errors of one line that say where and what else to write."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, RootModel, ValidationError

from sim.errors import UserError, did_you_mean
from sim.units import LARGEST
from sim.yamlfile.document import Document, PathTuple, shown

__all__ = ["validate"]

Model = TypeVar("Model", bound=BaseModel)


def validate(model_class: type[Model], document: Document) -> Model:
    """Make a *model_class* of the document, or raise its first problem as the document's error class.

    Unknown keys come first, since a misspelt key also leaves another one missing; then the file's order.
    """
    try:
        instance = model_class.model_validate(document.data)
    except ValidationError as problem:
        raise _first_error(model_class, document, problem) from None
    for path, value, expected in _odd_numbers(instance, document.data, ()):
        raise document.error(path, f"expected {expected}, got {shown(value)}")
    return instance


def _odd_numbers(instance: Any, data: Any, path: PathTuple) -> Iterator[tuple[PathTuple, Any, str]]:
    """Yield every number that pydantic takes and nobody means, as it is written and with what was expected."""
    if isinstance(instance, int | float) and not isinstance(instance, bool):
        if isinstance(data, bool):  # pydantic takes true for 1
            yield path, data, "a number"
        elif _is_absurd(instance):
            yield path, data, f"a number between {1 / LARGEST:g} and {LARGEST:g}"
    elif isinstance(data, dict):
        instance = instance.root if isinstance(instance, RootModel) else instance
        for key, value in data.items():
            child = instance.get(key) if isinstance(instance, Mapping) else getattr(instance, key, None)
            yield from _odd_numbers(child, value, (*path, key))
    elif isinstance(data, list) and isinstance(instance, Sequence):
        for index, (child, value) in enumerate(zip(instance, data, strict=False)):
            yield from _odd_numbers(child, value, (*path, index))


def _is_absurd(number: float) -> bool:
    return number != 0 and math.isfinite(number) and not 1 / LARGEST <= abs(number) <= LARGEST


def _first_error(model_class: type[BaseModel], document: Document, problem: ValidationError) -> UserError:
    errors = problem.errors(include_url=False)
    found = [(*_locate(model_class, details["loc"]), details) for details in errors]
    # A list with a wrong item is also reported as too short: only the innermost errors count.
    inner = [one for one in found if not any(_is_below(other[0], one[0]) for other in found)]
    path, annotation, first = min(
        inner, key=lambda one: (one[2]["type"] != "extra_forbidden", document.line_of(one[0]) or 0)
    )
    same = [details for at, _, details in inner if at == path]
    written = path[-1] if first["loc"][-1:] == ("[key]",) else document.value_at(path, default=first["input"])
    at, message = _explained(path, annotation, {**first, "input": written}, same)
    if first["type"] in _NO_NUMBER and isinstance(written, str):
        message += _unit_hint(written, _description(model_class, first["loc"]))
    return document.error(at, message)


def _is_below(path: PathTuple, ancestor: PathTuple) -> bool:
    return len(path) > len(ancestor) and path[: len(ancestor)] == ancestor


def _explained(path: PathTuple, annotation: Any, first: Mapping[str, Any], same: list[Any]) -> tuple[PathTuple, str]:
    """Return the path to print and the message for *first*; *same* are all errors at its path."""
    kind, value, context = first["type"], first["input"], first.get("ctx", {})
    match kind:
        case "extra_forbidden":
            keys = _keys(annotation)
            hint = _misplaced(annotation, path) or did_you_mean(path[-1], keys) or f"; choose {_choices(keys)}"
            return path, f"unknown key {path[-1]!r}{hint}"
        case "missing":
            return path[:-1], f"missing key {path[-1]!r}"
        case "union_tag_not_found":
            return path, f"missing key {context['discriminator']}: choose {_choices(_kinds(annotation))}"
        case "union_tag_invalid":
            name = context["discriminator"].strip("'")
            return (*path, name), _unknown(name, context["tag"], _kinds(annotation))
        case "literal_error" if len(same) == 1:
            word = "key" if first["loc"][-1] == "[key]" else "kind" if path[-1] == "kind" else "value"
            return path, _unknown(word, value, [str(choice) for choice in get_args(_bare(annotation))])
        case "value_error" | "assertion_error":
            return path, str(context["error"])
    expected = dict.fromkeys(_expected(details) for details in same)
    hint = f": write {{kind: {value}}}" if isinstance(value, str) and value in _kinds(annotation) else ""
    hint = hint or (": put it in quotes" if kind == "string_type" and isinstance(value, int | float) else "")
    return path, f"expected {' or '.join(expected)}, got {shown(value)}{hint}"


def _unknown(word: str, value: Any, choices: list[str]) -> str:
    return f"unknown {word} {shown(value)}{did_you_mean(value, choices)}; choose {_choices(choices)}"


def _unit_hint(text: str, description: str) -> str:
    """Return which unit the field has where *text* is a number with something behind it, and what to write."""
    number, unit = _QUANTITY.fullmatch(text), _UNIT.search(description)
    if number is None or unit is None:
        return ""
    write = f", write {number[1]}" if number[2] in (unit[1], _COUNTED.sub("", unit[1])) else ""
    return f": it is in {unit[1]}{write}"


_NO_NUMBER = ("float_parsing", "int_parsing")
_QUANTITY = re.compile(r"\s*([-+]?\d+(?:\.\d*)?)\s*(\D.*?)\s*")
_UNIT = re.compile(r"\[([^]]+)\]")
_COUNTED = re.compile(r"^[a-z]{3,}(?=/)")
"""What is counted, and may be left out: 4/s is 4 requests/s."""
_DISCRIMINATORS = ("kind", "what")
_MOST_PLACES = 3
_TINY = 1e-3
"""A least value below this only keeps numbers from being absurd."""
_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string_type": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "keys and values",
    "model": "keys and values",
    "finite": "a finite number",
    "greater_than_equal": "a number of at least {ge:g}",
    "greater_than": "a number greater than {gt:g}",
    "less_than_equal": "a number of at most {le:g}",
    "less_than": "a number less than {lt:g}",
    "literal": "{expected}",
    "too_short": "{min_length} or more items",
    "too_long": "{max_length} or fewer items",
}


def _expected(details: Mapping[str, Any]) -> str:
    least = details.get("ctx", {}).get("ge", 0)
    if 0 < least < _TINY and details["input"] <= 0:
        return "a number above 0"
    for prefix, words in _EXPECTED.items():
        if details["type"].startswith(prefix):
            return words.format(**details.get("ctx", {}))
    message: str = details["msg"]
    return message.removeprefix("Input should be ").removeprefix("Value error, ")


def _choices(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1] if names else "")))


def _locate(model_class: type[BaseModel], loc: PathTuple) -> tuple[PathTuple, Any]:
    """Follow pydantic's *loc* through the model to the path in the YAML and the annotation there.

    Pydantic puts the tag of a union's member into *loc*, where the YAML has nothing.
    """
    path: list[str | int] = []
    here: Any = model_class
    outer: Any = None
    for depth, step in enumerate(loc):
        members = _members(here)
        if step == "[key]" and _is_mapping(outer):  # pydantic's word; elsewhere it is a key that somebody wrote
            here = get_args(_bare(outer))[0]
        elif len(members) > 1:
            names = {name: member for member in members for name in (*_kinds(member), _name(member))}
            here = names.get(str(step), Any)
        else:
            path.append(step)
            outer, here = here, _inside(here, step, last=depth == len(loc) - 1)
    return tuple(path), here


def _description(model_class: type[BaseModel], loc: PathTuple) -> str:
    """Return how the field at pydantic's *loc* is described."""
    fields = getattr(_bare(_locate(model_class, loc[:-1])[1]), "model_fields", {})
    return next((field.description or "" for name, field in fields.items() if loc[-1] in (name, field.alias)), "")


def _misplaced(annotation: Any, path: PathTuple) -> str:
    """Return where else the key of the top level at *path* belongs, if there are but few fields of that name."""
    found = dict.fromkeys(".".join(each) for each in _paths(annotation, ()) if each[-1:] == path)
    return f" (did you mean {' or '.join(found)}?)" if 0 < len(found) <= _MOST_PLACES else ""


def _paths(annotation: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the path of every field below *annotation*, of each kind; items of lists and mappings have none."""
    for member in _members(annotation):
        for name, field in getattr(member, "model_fields", {}).items():
            path = (*above, field.alias or name)
            yield path
            yield from _paths(field.annotation, path)


def _inside(annotation: Any, step: str | int, last: bool) -> Any:
    bare = _bare(annotation)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        fields = {field.alias or name: field for name, field in bare.model_fields.items()}
        if step in fields:
            return fields[str(step)].annotation
        if bare.model_config.get("extra") == "allow":
            return get_args(get_type_hints(bare, include_extras=True)["__pydantic_extra__"])[-1]
        return bare if last else Any
    arguments = get_args(bare)
    return arguments[-1 if _is_mapping(bare) else 0] if arguments else Any


def _bare(annotation: Any) -> Any:
    """Strip Annotated, the None of an optional, and a model that only wraps a value."""
    while hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    if isinstance(annotation, type) and issubclass(annotation, RootModel):
        return _bare(annotation.model_fields["root"].annotation)
    members = [member for member in get_args(annotation) if member is not type(None)]
    return _bare(members[0]) if _is_union(annotation) and len(members) == 1 else annotation


def _members(annotation: Any) -> list[Any]:
    bare = _bare(annotation)
    if not _is_union(bare):
        return [bare]
    return [leaf for member in get_args(bare) if member is not type(None) for leaf in _members(member)]


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _is_mapping(annotation: Any) -> bool:
    return get_origin(_bare(annotation)) in (dict, Mapping)


def _name(annotation: Any) -> str:
    return str(getattr(annotation, "__name__", annotation))


def _kinds(annotation: Any) -> list[str]:
    """Return by which words a choice among models is made: the values of the field that tells them apart."""
    fields = (getattr(member, "model_fields", {}) for member in _members(annotation))
    tags = (each[name].annotation for each in fields for name in _DISCRIMINATORS if name in each)
    return [str(word) for tag in tags for word in get_args(tag)]


def _keys(annotation: Any) -> list[str]:
    fields = getattr(_bare(annotation), "model_fields", {})
    return [field.alias or name for name, field in fields.items()]
