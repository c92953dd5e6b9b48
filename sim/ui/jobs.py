"""Work beside the page: in a thread, with progress, and stopped when nobody wants it any more."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotDoneError
from contextlib import suppress
from threading import BoundedSemaphore, Thread
from typing import Generic, TypeVar

__all__ = ["Job", "OnProgress", "start"]

T = TypeVar("T")
OnProgress = Callable[[int, int], None]
"""Called with what is done and the total; raises `CancelledError` when the work is to stop."""

_THREADS = 3
_LONGEST_S = 1200.0
_free = BoundedSemaphore(_THREADS)


class Job(Generic[T]):
    """One piece of work that calls back now and then."""

    def __init__(self, work: Callable[[OnProgress], T]) -> None:
        self.done, self.total = 0, 0
        self._began_s = time.monotonic()
        self._stop = False
        self._future: Future[T] = Future()
        Thread(target=self._run, args=(work,), daemon=True).start()  # a server that ends waits for nobody

    def _run(self, work: Callable[[OnProgress], T]) -> None:
        with _free:
            if not self._future.set_running_or_notify_cancel():
                return
            try:
                self._future.set_result(work(self._progressed))
            except BaseException as error:  # whoever asks for the result gets it
                self._future.set_exception(error)

    def _progressed(self, done: int, total: int) -> None:
        if self._stop or time.monotonic() - self._began_s > _LONGEST_S:
            raise CancelledError
        self.done, self.total = done, total

    @property
    def finished(self) -> bool:
        """Whether there is a result, or an error."""
        return self._future.done()

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        return self.done / self.total if self.total else 0.0

    @property
    def elapsed_s(self) -> float:
        """Time since it was asked for [s]."""
        return time.monotonic() - self._began_s

    def wait(self, seconds: float) -> bool:
        """Wait at most so long; tell whether it has finished."""
        with suppress(NotDoneError, CancelledError, Exception):
            self._future.result(seconds)
        return self.finished

    def result(self) -> T:
        """Return the result of the finished work, or raise its error; `CancelledError` if it was stopped."""
        return self._future.result(0)

    def cancel(self) -> None:
        """Stop the work at its next call back."""
        self._stop = True
        self._future.cancel()


def start(work: Callable[[OnProgress], T]) -> Job[T]:
    """Begin *work* as soon as a thread is free."""
    return Job(work)
