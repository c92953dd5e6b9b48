from pathlib import Path

from sim.report.sweep import show


def row(point, **results):
    outcome = {"replication": 0, "seed": 1, "status": "ok", "error": None}
    return {"point": point, "deployment.replicas": point + 1, **outcome, **results}


def printed(capsys, *rows):
    show(rows, Path("sweep.parquet"), "table")
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_a_point_says_which_bounds_it_misses(capsys):
    rows = [
        row(0, kv_utilization_peak=0.42, **{"slo.ttft_p95.met": False, "slo.tpot_p95.met": True}),
        row(1, kv_utilization_peak=0.27, **{"slo.ttft_p95.met": True, "slo.tpot_p95.met": True}),
        row(2) | {"status": "infeasible", "error": "too large"},
    ]
    lines = printed(capsys, *rows)
    assert "point replicas KV peak SLO status" in lines
    assert "0 1 42.0% ttft_p95 MISSED ok" in lines
    assert "1 2 27.0% met ok" in lines
    assert "2 3 - - infeasible" in lines
    assert "! point 2 infeasible: too large" in lines


def test_an_overloaded_point_says_so_and_large_figures_have_no_exponent(capsys):
    lines = printed(capsys, row(0, p95_ttft_ms=52040.4, steady_state="overloaded"), row(1, p95_ttft_ms=9999.7))
    assert "0 1 52,040 ok, overloaded" in lines
    assert "1 2 10,000 ok" in lines


def test_without_bounds_there_is_no_verdict(capsys):
    assert "point replicas KV peak status" in printed(capsys, row(0, kv_utilization_peak=0.5))
