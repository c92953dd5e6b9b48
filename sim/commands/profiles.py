"""``sim profiles list|show NAME|add config.json|flags|check``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import get_args

from sim.errors import ProfileError, SimError, did_you_mean
from sim.profiles.describe import describe
from sim.profiles.folders import Kind, names
from sim.profiles.library import find, load, load_flags, load_model, profile_text
from sim.profiles.model_yaml import to_yaml
from sim.report.flags import flags_page
from sim.report.json import to_json

__all__ = ["add_arguments", "run"]

KINDS: tuple[Kind, ...] = get_args(Kind)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    lister = actions.add_parser("list", help="names of all profiles")
    lister.add_argument(
        "kind", nargs="?", choices=KINDS, help="only of this kind (default: all but calibrated constants)"
    )
    lister.set_defaults(action=_list)
    shower = actions.add_parser("show", help="one profile; a model also by path to its config.json or folder")
    shower.add_argument("name", metavar="NAME|PATH", help="profile of any kind, or a model's file or folder")
    shower.add_argument("--format", choices=("yaml", "json"), default="yaml", help="the file, or its numbers")
    shower.set_defaults(action=_show)
    adder = actions.add_parser("add", help="make a model profile of a Hugging Face config.json or model folder")
    adder.add_argument("config", metavar="config.json", help="the file, or the folder that holds it")
    adder.add_argument("-o", "--output", metavar="FILE.yaml", help="default: profiles/models/NAME.yaml here")
    adder.set_defaults(action=_add)
    actions.add_parser("flags", help="what becomes of each flag of the engines").set_defaults(action=_flags)
    actions.add_parser("check", help="read every profile and say what is wrong").set_defaults(action=_check)


def run(options: argparse.Namespace) -> int:
    """Do what was asked for."""
    status: int = options.action(options)
    return status


def _list(options: argparse.Namespace) -> int:
    every = tuple(kind for kind in KINDS if not kind.startswith("calibrated/"))
    for kind in (options.kind,) if options.kind else every:
        print(f"{kind}:")
        print("\n".join(f"  {name}" for name in names(kind)))
    return 0


def _show(options: argparse.Namespace) -> int:
    kind = _kind_of(options.name)
    if options.format == "yaml":
        print(profile_text(kind, options.name).rstrip())
        return 0
    facts = describe(load_model(options.name)) if kind == "models" else load(kind, options.name).model_dump(mode="json")
    print(to_json(facts))
    return 0


def _kind_of(name: str) -> Kind:
    """Return the first kind that has a profile of that *name*; a path is a model's."""
    for kind in KINDS:
        try:
            find(kind, name)
        except ProfileError:
            continue
        return "models" if Path(name).exists() else kind
    known = [known for kind in KINDS for known in names(kind)]
    raise ProfileError(f"no profile {name!r}{did_you_mean(name, known)}")


def _add(options: argparse.Namespace) -> int:
    model = load_model(options.config)
    path = Path(options.output or Path("profiles", "models", f"{model.name}.yaml"))
    try:
        to_yaml(model, path)
    except OSError as problem:
        raise ProfileError(f"cannot be written: {problem.strerror}", file=str(path)) from None
    print(path)
    return 0


def _flags(_options: argparse.Namespace) -> int:
    print(flags_page(map(load_flags, names("flags"))))
    return 0


def _check(_options: argparse.Namespace) -> int:
    problems = [problem for kind in KINDS for name in names(kind) if (problem := _problem(kind, name))]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    print(f"{sum(len(names(kind)) for kind in KINDS) - len(problems)} profiles are in order")
    return ProfileError.exit_code if problems else 0


def _problem(kind: Kind, name: str) -> SimError | None:
    try:
        load(kind, name)
    except SimError as problem:
        return problem
    return None
