"""Everything this program refuses, and how it says so.

::

    SimError                 exit 1
    ├── UserError            exit 2   one line: file:line: path: message (did you mean ...?)
    │   ├── ConfigError               an experiment
    │   ├── ProfileError              hardware, model, engine, workload or calibrated profile
    │   └── TraceError                a trace or a benchmark file
    └── InfeasibleError      exit 3   what is needed, what there is, the nearest change that fits
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["ConfigError", "InfeasibleError", "ProfileError", "SimError", "TraceError", "UserError", "did_you_mean"]


class SimError(Exception):
    """Base of all errors that this program raises on purpose."""

    exit_code = 1


class UserError(SimError):
    """Input that cannot be used; its text is one line and says where.

    Parameters
    ----------
    message
        What is wrong, with the offending value in it.
    file, line, path
        Where: the file, its line from 1, and the dotted path of the field. Each may be missing.
    """

    exit_code = 2

    def __init__(
        self, message: str, *, file: str | None = None, line: int | None = None, path: str | None = None
    ) -> None:
        self.message, self.file, self.line, self.path = " ".join(message.split()), file, line, path
        where = None if file is None else f"{file}:{line}" if line is not None else file
        super().__init__(": ".join(part for part in (where, path, self.message) if part))


class ConfigError(UserError):
    """An experiment that cannot be run as written."""


class ProfileError(UserError):
    """A hardware, model, engine, workload or calibrated profile that cannot be used."""


class TraceError(UserError):
    """A trace or benchmark file that cannot be read."""


class InfeasibleError(SimError):
    """A deployment that cannot work.

    Parameters
    ----------
    needs, has
        What the deployment needs and what there is, with units.
    nearest
        The nearest changes that fit, best first; may be empty.
    """

    exit_code = 3

    def __init__(self, needs: str, has: str, nearest: Iterable[str] = ()) -> None:
        self.needs, self.has, self.nearest = needs, has, tuple(nearest)
        advice = f". Nearest that fits: {'; or '.join(self.nearest)}" if self.nearest else ""
        super().__init__(f"{needs}; {has}{advice}")


def did_you_mean(name: object, choices: Iterable[str], limit: int = 3, cutoff: float = 0.5) -> str:
    """Return `` (did you mean 'x' or 'y'?)`` for the closest of *choices*, or an empty string.

    *cutoff* is how alike they have to be, from 0 to 1: more of it leaves misspellings only.
    """
    by_fold = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(str(name).casefold(), by_fold, n=limit, cutoff=cutoff)
    return f" (did you mean {' or '.join(repr(by_fold[fold]) for fold in close)}?)" if close else ""
