"""What instance rows amount to, by hand."""

import numpy as np
import pytest
from handmade import requests_of

from sim.metrics.fleet import degraded, summarise_fleet
from sim.metrics.instances import InstanceLog, InstanceState
from sim.metrics.pools import PoolContext

STARTING, READY, DRAINING, DOWN = InstanceState


def lives_of(*rows):
    log = InstanceLog()
    for row in rows:
        log.add(*row)
    return log.rows()


LIVES = lives_of(
    (0, 0.0, 100.0, READY),
    (1, 0.0, 40.0, READY),
    (1, 40.0, 60.0, DOWN),
    (1, 60.0, 70.0, STARTING),
    (1, 70.0, 100.0, READY),
)


def test_a_loss_lasts_until_as_many_are_ready_again():
    assert degraded(LIVES) == [(40.0, 70.0)]
    spare = lives_of((0, 0.0, 40.0, READY), (1, 40.0, 50.0, STARTING), (0, 40.0, 90.0, DOWN), (1, 50.0, 90.0, READY))
    assert degraded(spare) == [(40.0, 50.0)]


def test_losses_that_overlap_are_one():
    both = lives_of(
        (0, 0.0, 10.0, READY),
        (0, 10.0, 30.0, DOWN),
        (1, 0.0, 20.0, READY),
        (1, 20.0, 40.0, DOWN),
        (2, 0.0, 50.0, READY),
    )
    assert degraded(both) == [(10.0, 50.0)]


def test_a_fleet_in_numbers():
    pool = PoolContext(num_gpus=4, replicas=2, kv_blocks=20, lives=LIVES)
    late = {"retries": 1, "lost_tokens": 7}
    requests = requests_of(
        (10.0, 10, 11, 12, 5), (45.0, 45, 46, 50, 5, late), (69.0, 70, 71, 99, 5), (80.0, 80, 81, 82, 5)
    )
    fleet = summarise_fleet([pool], requests, np.array([True, True, False, False]))
    assert fleet.instance_hours == pytest.approx(180 / 3600)
    assert fleet.gpu_hours == pytest.approx(360 / 3600)
    assert fleet.availability == pytest.approx(170 / 200)
    assert (fleet.ready_replicas_mean, fleet.ready_replicas_min) == (1.7, 1)
    assert (fleet.scale_events, fleet.replica_losses, fleet.retries, fleet.lost_tokens) == (1, 1, 1, 7)
    assert (fleet.degraded_s, fleet.degraded_good_share) == (30.0, 0.5)


def test_ranks_are_paid_once():
    lives = lives_of((0, 0.0, 60.0, READY), (2, 0.0, 30.0, READY))
    pool = PoolContext(num_gpus=8, replicas=4, kv_blocks=20, attention_ranks=2, lives=lives)
    assert (pool.paid_gpus(60.0), pool.serving(60.0)) == (6.0, 3.0)


def test_without_lives_there_is_no_fleet():
    pool = PoolContext(num_gpus=4, replicas=2, kv_blocks=20)
    assert summarise_fleet([pool], requests_of((0, 0, 1, 2, 3)), np.array([True])) is None
    assert (pool.paid_gpus(10.0), pool.serving(10.0)) == (4, 2)
