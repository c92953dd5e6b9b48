"""Independent parts of a search on many processes, in their order, so that the answer is that of one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NoReturn, Protocol, TypeVar

from sim.errors import SimError
from sim.study.workers import Lost, computed

__all__ = ["Spread", "spread_on"]

Task = TypeVar("Task")
Answer = TypeVar("Answer")


class Spread(Protocol):
    """Answers tasks in their order; `map` does, one after the other."""

    def __call__(self, function: Callable[[Task], Answer], tasks: Sequence[Task], /) -> Iterable[Answer]:
        """Return the answers of *function* to *tasks*."""


def spread_on(
    pool: AbstractContextManager[Lost],
    on_done: Callable[[int, int], None],
    function: Callable[[Task], Answer],
    tasks: Sequence[Task],
) -> list[Answer]:
    """Return the answers of *function* to *tasks*, computed on the `workers` of *pool*.

    Parameters
    ----------
    on_done
        Called with the number of tasks done, and of all.

    Raises
    ------
    SimError
        A worker process died.
    """
    answers: dict[int, Answer] = {}
    on_done(0, len(tasks))
    with pool as lost:
        work: Callable[[tuple[int, Task]], Answer] = functools.partial(_second, function)
        for (place, _), answer in computed(work, list(enumerate(tasks)), lost, _died):
            answers[place] = answer
            on_done(len(answers), len(tasks))
    return [answers[place] for place in range(len(tasks))]


def _second(function: Callable[[Task], Answer], numbered: tuple[int, Task]) -> Answer:
    return function(numbered[1])


def _died(error: Exception) -> NoReturn:
    raise SimError(f"a worker process died, perhaps for want of memory ({type(error).__name__})")
