"""``sim schema``."""

from __future__ import annotations

import argparse
import json

from sim.experiment import Experiment

__all__ = ["add_arguments", "run", "schema_text"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no options."""


def run(_options: argparse.Namespace) -> int:
    """Print the schema that `experiment.schema.json` holds."""
    print(schema_text())
    return 0


def schema_text() -> str:
    """Return the JSON schema of an experiment, as text."""
    schema = Experiment.model_json_schema()
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2)
