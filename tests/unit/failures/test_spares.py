"""How many spares: the binomial, the machine repair model, and a simulation of both."""

import math

import numpy as np
import pytest
from serving import Ask, Case

from sim.cluster import Cluster, Pool
from sim.commands.spares import add_arguments, run
from sim.cost import Affine
from sim.errors import UserError
from sim.failures import Failures, enough_ready, spares_for
from sim.failures.failures import Rate
from sim.metrics.instances import InstanceState
from sim.router.least_loaded import LeastLoaded
from sim.scheduler.chunked_prefill import ChunkedPrefill
from sim.workload.traffic import Traffic


@pytest.mark.parametrize(("needed", "replicas"), [(1, 1), (3, 3), (3, 4), (8, 10), (100, 103)])
def test_without_a_limit_of_crews_it_is_the_binomial(needed, replicas):
    up = 900 / (900 + 100)
    exact = sum(math.comb(replicas, n) * up**n * (1 - up) ** (replicas - n) for n in range(needed, replicas + 1))
    assert enough_ready(needed, replicas, 900, 100) == pytest.approx(exact, rel=1e-12)
    assert enough_ready(needed, replicas, 900, 100, crews=replicas) == pytest.approx(exact, rel=1e-12)


def test_one_crew_for_two_machines_by_hand():
    """Lost twice as often as repaired, rates 1 and 2: weights 1, 2/2, 1/2 of none, one and two down."""
    assert enough_ready(2, 2, 1.0, 0.5, crews=1) == pytest.approx(1 / 2.5)
    assert enough_ready(1, 2, 1.0, 0.5, crews=1) == pytest.approx(2 / 2.5)


def test_the_least_number_that_is_enough():
    spares = spares_for(100, 0.999, 6000, 24)
    assert enough_ready(100, 100 + spares, 6000, 24) >= 0.999 > enough_ready(100, 99 + spares, 6000, 24)
    assert spares_for(100, 0.999, 6000, 24, crews=1) > spares
    with pytest.raises(ValueError, match="1 repair crews cannot keep 300 replicas ready"):
        spares_for(300, 0.9, 6000, 24, crews=1)


def test_what_is_nearly_always_away_takes_no_time_to_refuse():
    with pytest.raises(ValueError, match="1,000 spares cannot keep 20 replicas ready"):
        spares_for(20, 0.999, 3600, 3.6e6)
    assert spares_for(1, 0.999, 1, 100) == 694  # (100 / 101) ** 695 is the first power below 0.001


@pytest.mark.parametrize("repair", ["exponential", "fixed"])
def test_a_simulation_agrees(repair):
    """Four replicas, lost every 1,000 s for 200 s, in 400,000 s; intervals from ten batches, as wide as Student's t."""
    case = Case(ChunkedPrefill(), 100, 4, tuple(Ask(1000.0 * turn, 4, 1) for turn in range(400)))
    cluster = Cluster(
        [Pool(case.engine(cost=Affine(base_s=1.0).build()), 4)],
        LeastLoaded(),
        Traffic(case.requests()),
        seed=5,
        failures=Failures(gpu=Rate(mtbf_s=1000, repair_s=200, repair=repair), gpus_per_node=1),
        gateway_timeout_s=1e6,
    )
    cluster.run()
    times_s, ready = cluster.lives().number(InstanceState.READY)
    edges_s = np.linspace(0, times_s[-1], 11)
    for needed in (1, 2, 3, 4):
        enough_s = np.concatenate([[0.0], np.cumsum(np.diff(times_s) * (ready[:-1] >= needed))])
        shares = np.diff(np.interp(edges_s, times_s, enough_s)) / np.diff(edges_s)
        half = 3.25 * shares.std(ddof=1) / math.sqrt(10)  # 99 %
        assert enough_ready(needed, 4, 1000, 200) == pytest.approx(shares.mean(), abs=max(half, 0.002))


EXPERIMENT = """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB, replicas: 10, parallelism: {tp: 2}}
lifecycle: {cold_start_s: 1 h}
failures: {gpu: {mtbf_s: 1000 h, repair_s: 9 h}, gpus_per_node: 8}
workload: {arrivals: {kind: poisson, rate: 1}, lengths: {kind: preset, name: chat}}
"""


def _ask(tmp_path, text, *arguments):
    import argparse

    (tmp_path / "exp.yaml").write_text(text)
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args([str(tmp_path / "exp.yaml"), *arguments]))


def test_the_command_counts_what_a_replica_can_be_lost_by(tmp_path, capsys):
    assert _ask(tmp_path, EXPERIMENT) == 0
    shown = capsys.readouterr().out
    assert "N = 10; a replica is lost every 500 h, and away for 10 h" in shown
    assert f"N + 2: all N ready {enough_ready(10, 12, 500, 10):.5%} of the time" in shown


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ("gpu: {mtbf_s: 1000 h, repair_s: 9 h}, ", (), "has no rate that a replica could be lost by"),
        ("", ("--availability", "1"), "is not between 0 and 1"),
        ("", ("--crews", "0"), "at least one"),
    ],
)
def test_what_cannot_be_answered_is_refused(tmp_path, change, arguments, message):
    with pytest.raises(UserError, match=message):
        _ask(tmp_path, EXPERIMENT.replace(change, "") if change else EXPERIMENT, *arguments)
