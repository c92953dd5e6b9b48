"""``sim report EXP.yaml -o FILE.html``."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sim.commands.experiment import add_experiment, experiment_of
from sim.commands.processes import process_count
from sim.errors import UserError
from sim.report.files import writable_folder, write_files
from sim.report.html import html_of
from sim.report.json import to_json
from sim.report.markdown import markdown_of
from sim.search.cheapest import Cheapest
from sim.study.cache import Cache, default_folder
from sim.study.cheapest import find_cheapest
from sim.study.counter import Counter
from sim.study.dossier import dossier_of
from sim.study.laboratory import Laboratory
from sim.study.spread import Spread, spread_on
from sim.study.workers import workers

__all__ = ["add_arguments", "run"]

_FORMS: dict[str, Callable[[Mapping[str, Any]], str]] = {".html": html_of, ".md": markdown_of, ".json": to_json}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    add_experiment(parser, "its `search:` must be of the kind cheapest")
    parser.add_argument(
        "-o", "--output", action="append", metavar="FILE", help="ends with .html, .md or .json; repeatable"
    )
    parser.add_argument("--workers", type=process_count, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument(
        "--no-cache", action="store_true", help="neither use nor keep runs; with them a search goes on where it was"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")


def run(options: argparse.Namespace) -> int:
    """Search, gather what the report shows, and write it."""
    experiment = experiment_of(options)
    if not isinstance(experiment.search, Cheapest):
        raise experiment.error("search", "a report needs `search: {kind: cheapest}`")
    paths = [_path(name) for name in options.output or [f"{experiment.name}.html"]]
    counter = Counter(None if options.quiet else sys.stderr)
    laboratory = Laboratory(Cache(None if options.no_cache else default_folder()), counter.run)
    dossier = dossier_of(experiment, find_cheapest(experiment, laboratory, _spread(options, counter)), laboratory)
    counter.end()
    for path in paths:
        write_files(path.parent, {path.name: _FORMS[path.suffix](dossier).encode()})
        print(path)
    return 0


def _spread(options: argparse.Namespace, counter: Counter) -> Spread:
    if options.workers == 1:
        return map
    return functools.partial(spread_on, workers("local", options.workers, None), counter.part)


def _path(name: str) -> Path:
    """Return the path of a file to write, whose folder takes files."""
    path = Path(name)
    if path.suffix not in _FORMS:
        raise UserError(f"{name}: a report ends with one of {', '.join(_FORMS)}")
    writable_folder(path.parent)
    return path
