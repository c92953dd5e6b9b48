"""Where runs are computed: local processes, a Dask or a Ray cluster, all through joblib."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from joblib import Parallel, delayed, parallel_config

from sim.errors import UserError

__all__ = ["Backend", "Lost", "computed", "workers"]

Backend = Literal["local", "dask", "ray"]
Lost = tuple[type[Exception], ...]
"""What a backend raises when a worker process has died."""

_IDLE_S = 10

Task = TypeVar("Task")
Answer = TypeVar("Answer")


@contextmanager
def workers(backend: Backend, count: int | None, address: str | None) -> Iterator[Lost]:
    """Let `computed` use *count* processes (missing: one a core) on *backend* inside this block.

    Parameters
    ----------
    address
        Of a running Dask or Ray cluster, whose machines have this program and see the experiment's folder; missing:
        a cluster on this machine for as long as the block lasts.

    Raises
    ------
    UserError
        The backend is not installed, or there is no cluster at *address*.
    """
    if backend == "local" and address is not None:
        raise UserError(f"{address!r} is no use for local processes: choose --backend dask or ray", file="--address")
    with {"local": _local, "dask": _dask, "ray": _ray}[backend](count, address) as lost:
        yield lost


@contextmanager
def _local(count: int | None, _address: str | None) -> Iterator[Lost]:
    from concurrent.futures.process import BrokenProcessPool

    # Idle workers soon leave, so that those of a killed parent do, too.
    with parallel_config("loky", n_jobs=count or -1, idle_worker_timeout=_IDLE_S):
        yield (BrokenProcessPool,)


@contextmanager
def _dask(count: int | None, address: str | None) -> Iterator[Lost]:
    try:
        from distributed import Client, KilledWorker
    except ImportError:
        raise _not_installed("dask") from None
    local = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None}
    try:
        client = Client(**(local if address is None else {"address": address}))
    except (OSError, ValueError) as problem:
        raise UserError(f"no Dask scheduler there: {problem}", file=address) from None
    with client, parallel_config("dask"):
        yield (KilledWorker,)


@contextmanager
def _ray(count: int | None, address: str | None) -> Iterator[Lost]:
    try:
        import ray
        from ray.util.joblib.ray_backend import RayBackend
    except ImportError:
        raise _not_installed("ray") from None
    from joblib import register_parallel_backend

    class Generating(RayBackend):  # type: ignore[misc]
        supports_return_generator = True  # its pool calls back, which is all that a generator needs

    register_parallel_backend("ray", Generating)
    try:
        ray.init(address, num_cpus=count if address is None else None, include_dashboard=False, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as problem:
        raise UserError(f"no Ray cluster there: {problem}", file=address) from None
    try:
        with parallel_config("ray", n_jobs=count or -1):
            yield (ray.exceptions.RayError,)
    finally:
        ray.shutdown()


def _not_installed(backend: str) -> UserError:
    return UserError(f"the backend is not installed: pip install 'servecast[{backend}]'", file=f"--backend {backend}")


def computed(
    answer: Callable[[Task], Answer], tasks: Sequence[Task], lost: Lost, on_lost: Callable[[Exception], Answer]
) -> Iterator[tuple[Task, Answer]]:
    """Yield each of the *tasks* with its *answer*, as they finish on the `workers`.

    When a worker process dies, what had not finished is computed anew in two halves, and so on until a task that takes
    its worker with it is alone: its answer is that of *on_lost*.
    """
    left = dict(enumerate(tasks))
    try:
        for place, result in _in_parallel(answer, tasks):
            yield left.pop(place), result
    except lost as error:
        if len(tasks) == 1:
            yield tasks[0], on_lost(error)
            return
        rest = list(left.values())
        half = (len(rest) + 1) // 2
        for part in filter(None, (rest[:half], rest[half:])):
            yield from computed(answer, part, lost, on_lost)


def _in_parallel(answer: Callable[[Task], Answer], tasks: Sequence[Task]) -> Iterator[tuple[int, Answer]]:
    """Yield the place of each task with its answer, as they finish."""
    calls = (delayed(_numbered)(answer, place, task) for place, task in enumerate(tasks))
    results: Any = Parallel(return_as="generator_unordered", batch_size=1)(calls)
    with warnings.catch_warnings():  # of results that nobody wants any more, because the folder takes no more rows
        warnings.filterwarnings("ignore", message="[0-9]+ tasks", category=UserWarning)
        yield from results


def _numbered(answer: Callable[[Task], Answer], place: int, task: Task) -> tuple[int, Answer]:
    return place, answer(task)
