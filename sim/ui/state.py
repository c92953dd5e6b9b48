"""What a page shows: one experiment as plain data, which widgets, links and YAML all read and write."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sim.errors import ConfigError, UserError
from sim.experiment import Experiment, experiment_of
from sim.ui.example import example
from sim.ui.link import Data, data_of, pruned, query_of
from sim.ui.uploads import Uploads
from sim.yamlfile import Document, parse_yaml, to_yaml

__all__ = ["FILE_NAME", "State"]

FILE_NAME = "experiment.yaml"
MOST_REQUESTS = 200_000
"""Most requests of a run on the page; the command line takes more."""
_MOST_CHARACTERS = 200_000


@dataclass
class State:
    """One experiment, and how often it was replaced as a whole.

    Attributes
    ----------
    worked_example
        Text that it begins with, and that its link tells the difference to.
    data
        The experiment as plain data; never changed in place.
    generation
        Part of the keys of widgets, so that they begin anew when the data come from elsewhere.
    name
        Also part of these keys, where a page shows several experiments.
    """

    worked_example: str
    uploads: Uploads
    data: Data = field(default_factory=dict)
    generation: int = 0
    name: str = ""
    _written: tuple[Data, str] = field(default_factory=lambda: ({}, ""), repr=False)

    def __post_init__(self) -> None:
        """Begin with the worked example."""
        self.data = self.data or copy.deepcopy(example(self.worked_example).data)

    @property
    def text(self) -> str:
        """The experiment as YAML: what is run, shown and downloaded."""
        if self._written[0] is not self.data:
            self._written = self.data, to_yaml(self.data)
        return self._written[1]

    @property
    def query(self) -> dict[str, str]:
        """The query of a link to it."""
        return query_of(self.data, example(self.worked_example).data)

    def value(self, path: str) -> Any:
        """Return what is written at the dotted *path*, or None."""
        value: Any = self.data
        for step in path.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        return value

    def set(self, path: str, value: Any) -> None:
        """Write *value* at the dotted *path*; None leaves it open."""
        self.data = pruned(self._document().replace(path, copy.deepcopy(value), FILE_NAME).data)

    def read_query(self, query: Mapping[str, str]) -> None:
        """Take over a link; raise a `ConfigError` for one that is none."""
        self._replace(data_of(query, example(self.worked_example)))

    def read_text(self, text: str) -> None:
        """Take over somebody's YAML if it is an experiment; raise a `UserError` that says what is wrong, and where."""
        if len(text) > _MOST_CHARACTERS:
            raise ConfigError(f"more than {_MOST_CHARACTERS:,} characters are no experiment")
        document = parse_yaml(text, str(self.uploads.folder / FILE_NAME))
        self._checked(document)
        self._replace(pruned(document.data))

    def take(self, document: Document) -> None:
        """Take over the data of a *document* that was checked before."""
        self._replace(pruned(copy.deepcopy(document.data)))

    def reset(self) -> None:
        """Begin again with the worked example."""
        self._replace(copy.deepcopy(example(self.worked_example).data))

    def experiment(self) -> Experiment:
        """Return the experiment of the data.

        Raises
        ------
        UserError
            It cannot be run as it is, or names a file that was not uploaded.
        """
        return self._checked(self._document())

    def checked(self) -> tuple[Experiment | None, UserError | None]:
        """Return the experiment, or None and what is wrong with it."""
        try:
            return self.experiment(), None
        except UserError as error:
            return None, error

    def _replace(self, data: Data) -> None:
        self.data, self.generation = data, self.generation + 1

    def _document(self) -> Document:
        return parse_yaml(self.text, str(self.uploads.folder / FILE_NAME))

    def _checked(self, document: Document) -> Experiment:
        experiment = experiment_of(document)
        self.uploads.require_own(experiment)
        count = experiment.workload.num_requests
        if count is not None and count > MOST_REQUESTS:
            too_many = f"{count:,}: this page runs at most {MOST_REQUESTS:,}; `python -m sim run` takes more"
            raise experiment.error("workload.num_requests", too_many)
        return experiment
