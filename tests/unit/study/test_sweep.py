import math

import pytest
from pyarrow import parquet
from small_study import sweep_of, write

from sim.errors import ConfigError
from sim.experiment import load_experiment
from sim.simulate import simulate
from sim.study import sweep as sweep_module
from sim.study.point import points_of
from sim.study.table import parquet_of, rows_in


def test_a_row_is_the_axes_and_the_public_keys_of_the_run(tmp_path):
    path = write(tmp_path)
    rows, _ = sweep_of(path, tmp_path / "out")
    assert [row["point"] for row in rows] == list(range(6))
    row = rows[3]
    assert (row["workload.arrivals.rate"], row["workload.lengths.output_tokens"]) == (4, 20)
    assert (row["seed"], row["status"], row["error"]) == (1, "ok", None)
    settings = ["workload.arrivals.rate=4", "workload.lengths.output_tokens=20"]
    alone = simulate(load_experiment(path, settings)).summary.as_dict()
    for key, value in alone.items():
        if key != "wall_s" and not isinstance(value, dict):
            assert row[key] == (None if isinstance(value, float) and math.isnan(value) else value), key
    assert row["iteration_time.by_operation.base"] == alone["iteration_time"]["by_operation"]["base"]
    low, high = alone["intervals"].get("mean_ttft_ms", (None, None))
    assert (row.get("intervals.mean_ttft_ms.low"), row.get("intervals.mean_ttft_ms.high")) == (low, high)


def test_points_share_their_random_draws(tmp_path):
    rows, _ = sweep_of(write(tmp_path, "{deployment.replicas: [1, 2, 4]}"), tmp_path / "out")
    assert len({row["total_input_tokens"] for row in rows}) == 1
    assert {row["seed"] for row in rows} == {1}


def test_replications_have_the_same_seeds_at_every_point(tmp_path):
    rows, _ = sweep_of(write(tmp_path, "{deployment.replicas: [1, 2], replications: 3}"), tmp_path / "out")
    assert [(row["deployment.replicas"], row["replication"], row["seed"]) for row in rows] == [
        *((1, 0, 1), (1, 1, 2), (1, 2, 3)),
        *((2, 0, 1), (2, 1, 2), (2, 2, 3)),
    ]
    assert len({row["mean_ttft_ms"] for row in rows}) == 6


def test_the_table_has_the_rows(tmp_path):
    rows, _ = sweep_of(write(tmp_path), tmp_path / "out")
    files = [path.name for path in (tmp_path / "out").iterdir()]
    assert files == ["sweep.parquet"]
    assert parquet.read_table(tmp_path / "out").to_pylist() == rows


def test_what_does_not_fit_or_makes_no_sense_is_a_row(tmp_path):
    small = "{engine.num_gpu_blocks_override: null, deployment.gpu: T4}"
    sweep = f"{{kind: list, points: [{{}}, {small}, {{deployment.gpu: H1000}}]}}"
    rows, _ = sweep_of(write(tmp_path, sweep), tmp_path / "out")
    assert [row["status"] for row in rows] == ["ok", "infeasible", "invalid"]
    assert "leave" in rows[1]["error"]
    assert "point 2: deployment.gpu: no profile 'H1000' in hardware" in rows[2]["error"]


def test_a_defect_is_a_row_too(tmp_path, monkeypatch):
    def broken(experiment):
        raise ZeroDivisionError("planted") if experiment.deployment.replicas == 2 else KeyboardInterrupt

    monkeypatch.setattr("sim.study.outcome.simulate", broken)
    with pytest.raises(KeyboardInterrupt):
        sweep_of(write(tmp_path, "{deployment.replicas: [2, 1]}"), tmp_path / "out")
    monkeypatch.undo()
    rows, left = sweep_of(tmp_path / "exp.yaml", tmp_path / "out")
    assert left == 1
    assert rows[0]["status"] == "failed"
    assert rows[0]["error"].startswith("ZeroDivisionError: planted (")
    assert rows[1]["status"] == "ok"


def test_a_sweep_of_nothing_but_mistakes_is_an_error(tmp_path):
    message = r"exp\.yaml: point 0: deployment.replica: unknown key 'replica' \(did you mean 'replicas'"
    with pytest.raises(ConfigError, match=message):
        sweep_of(write(tmp_path, "{deployment.replica: [1, 2]}"), tmp_path / "out")


def test_no_sweep_and_too_many_points(tmp_path):
    path = write(tmp_path)
    document = load_experiment(path, ["sweep=null"])
    with pytest.raises(ConfigError, match="sweep: missing"):
        points_of(document)
    hundred = list(range(1, 101))
    with pytest.raises(ConfigError, match="more than 100,000 runs"):
        points_of(load_experiment(path, [f"sweep={{a: {hundred}, b: {hundred}, c: {hundred}}}"]))


def test_lists_and_mappings_as_values_become_json(tmp_path):
    sweep = "{engine.scheduler: [{kind: static, batch_size: 4}, {kind: continuous}], workload.num_requests: [20, 30]}"
    rows, _ = sweep_of(write(tmp_path, sweep), tmp_path / "out")
    table = parquet.read_table(tmp_path / "out").to_pylist()
    schedulers = [row["engine.scheduler"] for row in table]
    assert schedulers[1:3] == ['{"kind": "static", "batch_size": 4}', '{"kind": "continuous"}']
    assert [row["completed"] for row in rows] == [20, 30, 20, 30]


def test_what_is_there_is_not_run_again(tmp_path, monkeypatch):
    path, out = write(tmp_path), tmp_path / "out"
    before, left = sweep_of(path, out)
    assert left == 6
    monkeypatch.setattr(sweep_module, "computed", None)  # would be called for any point that is left
    after, left = sweep_of(path, out)
    assert (after, left) == (before, 0)


def test_a_longer_sweep_keeps_the_points_that_are_the_same(tmp_path):
    path, out = write(tmp_path), tmp_path / "out"
    sweep_of(path, out)
    longer = "sweep={workload.arrivals.rate: [2, 4, 8, 16], workload.lengths.output_tokens: [10, 20]}"
    rows, left = sweep_of(path, out, overrides=[longer])
    assert (len(rows), left) == (8, 2)


def test_a_changed_experiment_is_run_anew(tmp_path):
    path, out = write(tmp_path), tmp_path / "out"
    sweep_of(path, out)
    assert sweep_of(path, out, overrides=["seed=2"])[1] == 6


@pytest.mark.parametrize("content", [b"", b"PAR1 is no table", b"\0" * 1000])
def test_a_damaged_part_is_run_again(tmp_path, content):
    path, out = write(tmp_path), tmp_path / "out"
    before, _ = sweep_of(path, out)
    (out / "sweep.parquet").unlink()
    (out / "_points").mkdir()
    (out / "_points" / "000003.parquet").write_bytes(content)
    assert sweep_of(path, out) == (before, 6)


def test_figures_of_pools_survive_the_table(tmp_path):
    pools = [{"name": "a", "busy_share": 0.5}, {"name": "b", "busy_share": 0.25}]
    (tmp_path / "rows.parquet").write_bytes(parquet_of([{"point": 0, "pools": pools}, {"point": 1, "pools": None}]))
    assert [row["pools"] for row in rows_in(tmp_path / "rows.parquet")] == [pools, None]
