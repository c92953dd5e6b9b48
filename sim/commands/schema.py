"""``sim schema``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from sim.experiment import Experiment
from sim.report.reference import reference_page

__all__ = ["add_arguments", "run", "schema_text"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the form."""
    parser.add_argument(
        "--format", choices=("json", "markdown"), default="json", help="a schema for editors, or a page to read"
    )


def run(options: argparse.Namespace) -> int:
    """Print the schema that `experiment.schema.json` holds, or the page `docs/reference.md`."""
    print(schema_text() if options.format == "json" else reference_page(_schema()))
    return 0


def schema_text() -> str:
    """Return the JSON schema of an experiment, as text."""
    return json.dumps(_schema(), indent=2)


def _schema() -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Experiment.model_json_schema()}
