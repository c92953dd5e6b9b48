import pytest
from small_study import sweep_of, write

from sim.errors import UserError
from sim.study.workers import computed, workers


def table(path, out, **options):
    sweep_of(path, out, **options)
    return (out / "sweep.parquet").read_bytes()


def test_one_process_and_two_give_the_same_bytes(tmp_path):
    path = write(tmp_path)
    assert table(path, tmp_path / "a", count=1) == table(path, tmp_path / "b", count=2)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_clusters_give_the_same_bytes(tmp_path, backend, package):
    pytest.importorskip(package, reason=f"needs the extra [{backend}]")
    path = write(tmp_path)
    assert table(path, tmp_path / "a") == table(path, tmp_path / "b", count=2, backend=backend)


@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_extra_is_named(tmp_path, backend, package, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(UserError, match=rf"pip install 'servecast\[{backend}\]'"), workers(backend, 1, None):
        pass


def test_an_address_needs_a_cluster():
    with pytest.raises(UserError, match="choose --backend dask or ray"), workers("local", 1, "tcp://localhost:1"):
        pass


class DeathError(Exception):
    """Stands for the death of a worker process."""


def test_a_task_that_kills_its_worker_is_found_and_the_rest_is_done(monkeypatch):
    started = []

    def in_parallel(answer, tasks):
        for place, task in enumerate(tasks):
            started.append(task)
            if task == "poison":
                raise DeathError
            yield place, answer(task)

    monkeypatch.setattr("sim.study.workers._in_parallel", in_parallel)
    tasks = ["a", "b", "poison", "c", "d", "e", "f"]
    answers = dict(computed(str.upper, tasks, (DeathError,), lambda error: type(error).__name__))
    assert answers == {"a": "A", "b": "B", "poison": "DeathError", "c": "C", "d": "D", "e": "E", "f": "F"}
    assert all(started.count(task) == 1 for task in tasks if task != "poison")
    assert started.count("poison") == 4  # among 7, 5, 3 and alone


