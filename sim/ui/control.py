"""From pydantic fields to what a form has to ask: nothing here draws."""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sim.policy import Policy

__all__ = ["Control", "Form", "Node", "Section", "Variants", "at", "form_of", "proposed"]

Form = Literal["whole", "number", "choice", "flag", "text", "file", "words", "wholes"]
"""``words`` and ``wholes`` are lists; any other is one value."""
_ACRONYMS = {"moe": "MoE", "kwh": "kWh"} | {
    word: word.upper() for word in ("tp", "pp", "dp", "ep", "gpu", "kv", "mlp", "usd", "cv")
}
_VAGUE = {"kind", "name", "path", "version", "seed", "mean", "share", "tokens"}
_UNIT = re.compile(r"\[([^\[\]]+)\]")


@dataclass(frozen=True, slots=True)
class Control:
    """One value.

    Attributes
    ----------
    path
        Dotted, from the experiment down.
    label, help
        The field's name in words, with its unit; and its description.
    choices
        Of a ``choice``, or of each of the ``words``; empty for any other form.
    low, high
        Bounds, inclusive or not; None without one.
    optional
        May be left out, and then means what its description says.
    default
        What holds where nothing is written; None where there is nothing, or no single value.
    """

    path: str
    label: str
    help: str
    form: Form
    choices: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    optional: bool = False
    default: Any = None


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping of fixed fields; one that is *optional* can be left out as a whole."""

    path: str
    label: str
    help: str
    model: type[BaseModel]
    optional: bool

    def nodes(self) -> Iterator[Node]:
        """Yield its fields."""
        return form_of(self.model, f"{self.path}.")


@dataclass(frozen=True, slots=True)
class Variants:
    """A policy that is chosen by ``kind``, and has fields of its own.

    Attributes
    ----------
    default
        Kind where nothing is written; None if nothing may be, and that is no kind.
    """

    path: str
    label: str
    help: str
    models: Mapping[str, type[BaseModel]]
    optional: bool
    default: str | None

    def nodes(self, kind: str) -> Iterator[Node]:
        """Yield the fields of *kind* beside the kind itself."""
        return form_of(self.models[kind], f"{self.path}.")


Node = Control | Section | Variants


@dataclass(slots=True)
class _Shape:
    """What an annotation amounts to."""

    types: list[Any] = field(default_factory=list)
    literals: list[Any] = field(default_factory=list)
    bounds: list[Any] = field(default_factory=list)
    optional: bool = False
    many: bool = False

    def add(self, annotation: Any, metadata: Iterable[Any] = ()) -> None:
        for one in metadata:
            self.bounds += one.metadata if isinstance(one, FieldInfo) else [one]
        origin = get_origin(annotation)
        if origin is Annotated:
            self.add(get_args(annotation)[0], get_args(annotation)[1:])
        elif origin in (Union, types.UnionType):
            for each in get_args(annotation):
                self.add(each)
        elif origin is Literal:
            self.literals += get_args(annotation)
        elif origin is tuple and len(get_args(annotation)) == 2 and get_args(annotation)[1] is Ellipsis:
            self.many = True
            self.add(get_args(annotation)[0])
        elif annotation is type(None):
            self.optional = True
        else:
            self.types.append(annotation)

    @property
    def models(self) -> list[type[BaseModel]]:
        """The sections and policies among its types."""
        return [each for each in self.types if isinstance(each, type) and issubclass(each, BaseModel)]


def form_of(model: type[BaseModel], prefix: str = "") -> Iterator[Node]:
    """Yield what to ask for a *model* whose fields' paths begin with *prefix*; what takes more than a form is left out.

    What is required comes first. Left out are mappings with free keys, and lists: these are for the YAML.
    """
    for name, info in sorted(model.model_fields.items(), key=lambda item: not item[1].is_required()):
        chosen = name == "kind" and issubclass(model, Policy)
        if not chosen and (node := _node(f"{prefix}{name}", name, info)) is not None:
            yield node


def at(nodes: Iterable[Node], paths: Iterable[str]) -> Iterator[Node]:
    """Yield the nodes at the dotted *paths*, in their order, from *nodes* or the sections below them."""
    known = list(nodes)
    for path in paths:
        yield from _below(known, path)


def _below(nodes: Iterable[Node], path: str) -> Iterator[Node]:
    for node in nodes:
        if node.path == path:
            yield node
        elif isinstance(node, Section) and path.startswith(f"{node.path}."):
            yield from _below(node.nodes(), path)


def _node(path: str, name: str, info: FieldInfo) -> Node | None:
    shape = _Shape()
    shape.add(info.annotation, info.metadata)
    text = info.description or ""
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    if shape.models and shape.many:
        return None
    if len(shape.models) == 1 and not issubclass(shape.models[0], Policy):
        only = shape.models[0]
        return None if _is_free(only) else Section(path, _label(path, text), text, only, shape.optional)
    if shape.models:
        models = {str(each.model_fields["kind"].default): each for each in shape.models}
        return Variants(path, _label(path, text), text, models, shape.optional, getattr(default, "kind", None))
    form = _form(shape)
    if form is None:
        return None
    low, high = _bounds(shape.bounds)
    return Control(path, _label(path, text), text, form, tuple(shape.literals), low, high, shape.optional, default)


def _is_free(model: type[BaseModel]) -> bool:
    """Tell whether a model takes any keys, such as the objectives of an SLO."""
    return "root" in model.model_fields


def _form(shape: _Shape) -> Form | None:
    if shape.many:
        return "words" if shape.literals or shape.types == [str] else "wholes" if shape.types == [int] else None
    if shape.literals:
        return "text" if shape.types else "choice"
    single = [each for each in shape.types if get_origin(each) is not dict]  # by a key each is for the YAML
    if len(single) != 1:
        return None
    forms: dict[Any, Form] = {int: "whole", float: "number", bool: "flag", str: "text", Path: "file"}
    return forms.get(single[0])


def _bounds(metadata: Sequence[Any]) -> tuple[float | None, float | None]:
    low = high = None
    for one in metadata:
        if isinstance(one, Ge | Gt):
            low = one.ge if isinstance(one, Ge) else one.gt
        elif isinstance(one, Le | Lt):
            high = one.le if isinstance(one, Le) else one.lt
    return low, high  # type: ignore[return-value]  # every bound of an experiment is a number


def _label(path: str, description: str) -> str:
    """Return the words of a field, and its unit: ``prices.gpu_hour_usd`` is ``GPU hour USD [$/h]``.

    A name that says nothing without the field around it has that, too: ``engine.kind`` is ``Engine kind``.
    """
    *around, name = path.split(".")
    if name in _VAGUE and around:
        name = f"{around[-1]}_{name}"
    words = [_ACRONYMS.get(word, word) for word in name.split("_")]
    if len(words) > 1 and words[-1] in ("s", "w"):
        del words[-1]  # the unit says it
    text = " ".join(words)
    units = _UNIT.findall(description)
    return f"{text[:1].upper()}{text[1:]}" + (f" [{units[-1]}]" if units else "")


def proposed(model: type[BaseModel], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return what *model* needs to be valid: from *before*, what is there of that name, else the field's own example.

    ``kind`` comes first where the model is a policy.
    """
    found: dict[str, Any] = {}
    for name, info in model.model_fields.items():
        if name == "kind" and issubclass(model, Policy):
            found[name] = info.default
        elif info.is_required():
            found[name] = _proposal(info, before.get(name))
    return found


def _proposal(info: FieldInfo, before: Any) -> Any:
    shape = _Shape()
    shape.add(info.annotation, info.metadata)
    if len(shape.models) == 1 and not info.examples:
        return proposed(shape.models[0], before if isinstance(before, Mapping) else {})
    number = isinstance(before, int | float) and not isinstance(before, bool)
    if number and shape.types in ([int], [float]):
        return before
    return info.examples[0] if info.examples else None
