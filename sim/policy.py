"""A policy is a frozen pydantic model: its fields are its YAML, its methods are its behaviour.

A folder of policies holds one file for each; `union_of` imports them all and builds the choice by ``kind``. So a new
scheduler, router, arrival process or length distribution is one new file and nothing else.
"""

from __future__ import annotations

import functools
import importlib
import operator
import pkgutil
from typing import Annotated, Any, TypeVar

from pydantic import Field

from sim.section import Section

__all__ = ["Policy", "kinds_of", "union_of"]


class Policy(Section):
    """Base of every choice that a YAML names by ``kind``; unknown keys are refused."""

    kind: str


P = TypeVar("P", bound=Policy)


def _leaves(base: type[P]) -> list[type[P]]:
    subclasses = [leaf for child in base.__subclasses__() for leaf in (_leaves(child) or [child])]
    return sorted(subclasses, key=lambda policy: str(policy.model_fields["kind"].default))


def kinds_of(package: str, base: type[P]) -> dict[str, type[P]]:
    """Import every module of *package* and return its policies by their ``kind``."""
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")
    return {policy.model_fields["kind"].default: policy for policy in _leaves(base)}


def union_of(package: str, base: type[P]) -> Any:
    """Return the pydantic type of "any policy of *package*", chosen by ``kind``."""
    choices = list(kinds_of(package, base).values())
    if len(choices) == 1:
        return choices[0]
    return Annotated[functools.reduce(operator.or_, choices), Field(discriminator="kind")]
