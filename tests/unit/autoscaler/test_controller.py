"""Autoscalers by hand: the formula of Kubernetes, its windows and steps, and zero as KEDA has it."""

import math

import numpy as np
import pytest
from pydantic import ValidationError

from sim.autoscaler import Controller, Snapshot
from sim.autoscaler.controller import _Extreme
from sim.autoscaler.cpu_utilization import CpuUtilization
from sim.autoscaler.forecast import Forecast
from sim.autoscaler.gpu_utilization import GpuUtilization
from sim.autoscaler.kv_use import KvUse
from sim.autoscaler.queue_depth import QueueDepth
from sim.autoscaler.running_requests import RunningRequests
from sim.autoscaler.schedule import Schedule
from sim.autoscaler.tokens_per_s import TokensPerSecond
from sim.autoscaler.ttft import TimeToFirstToken


def decisions(policy, *loads, every_s=15.0, current=1):
    """Play snapshots with so many requests that wait, one each *every_s*, and return the numbers of replicas."""
    controller, found = Controller(policy), []
    for turn, load in enumerate(loads, start=1):
        at_s = turn * every_s
        seen = Snapshot(at_s=at_s, ready=current, waiting=load, arrivals=sum(loads[:turn]))
        current = controller.decide(at_s, current, seen)
        found.append(current)
    return found


@pytest.mark.parametrize(
    ("waiting", "current", "wanted"),
    [(10, 1, 2), (11, 1, 3), (25, 5, 5), (27, 5, 5), (28, 5, 6), (23, 5, 5), (22, 5, 5), (20, 5, 4), (0, 5, 0)],
)
def test_replicas_follow_from_a_total_unless_it_is_within_ten_percent(waiting, current, wanted):
    policy = QueueDepth(target=5, max_replicas=10)
    assert policy.wanted([Snapshot(waiting=waiting, ready=current)], current) == wanted


def test_queue_depth_counts_who_runs_unless_told_not_to():
    seen = [Snapshot(waiting=3, running=9)]
    assert QueueDepth(target=4, max_replicas=9).wanted(seen, 1) == 3
    assert QueueDepth(target=4, max_replicas=9, running=False).wanted(seen, 2) == 1
    assert RunningRequests(target=4, max_replicas=9).wanted(seen, 1) == 3


@pytest.mark.parametrize(
    ("use", "ready", "starting", "wanted"),
    [
        (0.9, 2, 0, 3),
        (0.65, 2, 0, 2),
        (0.3, 4, 0, 2),
        (0.9, 2, 1, 3),
        (0.9, 4, 1, 6),
        (0.9, 2, 4, 6),
        (math.nan, 0, 1, 1),
    ],
)
def test_replicas_follow_from_a_mean_share_and_starting_ones_count_as_idle(use, ready, starting, wanted):
    """Kubernetes: 0.9 of 2 ready ones and one that starts is 0.6 of three, which is no reason to add any."""
    seen = [Snapshot(ready=ready, starting=starting, kv_use=use)]
    assert KvUse(target=0.6, max_replicas=10).wanted(seen, ready + starting) == wanted


def test_rates_are_taken_over_the_window():
    seen = [Snapshot(at_s=at_s, tokens=tokens) for at_s, tokens in ((0, 0), (30, 9000), (60, 9000), (90, 15000))]
    assert TokensPerSecond(target=50, window_s=60, max_replicas=9).wanted(seen, 1) == 2  # 6,000 in 60 s
    assert TokensPerSecond(target=50, window_s=30, max_replicas=9).wanted(seen, 1) == 4
    assert TokensPerSecond(target=50, window_s=60, max_replicas=9).wanted(seen[:1], 3) == 3


def test_gpu_utilization_cannot_tell_one_request_from_a_full_batch():
    def wanted(running):
        seen = [Snapshot(), Snapshot(at_s=60, ready=2, running=running, serving_s=120, busy_s=119)]
        return GpuUtilization(max_replicas=9).wanted(seen, 2)

    assert wanted(1) == wanted(256) == 3


def test_cpu_utilization_stays_low_however_full_the_batch():
    seen = [Snapshot(gpus=1), Snapshot(at_s=60, ready=2, gpus=1, running=500, serving_s=120, busy_s=120)]
    assert CpuUtilization(max_replicas=9).wanted(seen, 2) == 1  # 2 of 8 cores, 25 % against 80 %
    assert CpuUtilization(max_replicas=9, cores_per_gpu=2, target=0.5).wanted(seen, 2) == 4


def test_ttft_takes_the_percentile_of_the_window():
    times_s = {0: (99.0,), 60: (1.0, 2.0), 90: (3.0, 4.0)}
    seen = [Snapshot(at_s=at_s, ttft_s=ttft_s) for at_s, ttft_s in times_s.items()]
    assert TimeToFirstToken(target_s=2, percentile=50, max_replicas=9).wanted(seen, 2) == 2
    assert TimeToFirstToken(target_s=2, percentile=95, max_replicas=9).wanted(seen, 1) == 2
    assert TimeToFirstToken(target_s=2, max_replicas=9).wanted([Snapshot()], 3) == 3


def test_up_at_once_and_down_to_the_highest_wish_of_five_minutes():
    policy = QueueDepth(target=5, max_replicas=10)
    assert decisions(policy, 20, *[5] * 25) == [4] * 21 + [1] * 5


def test_what_was_there_at_the_beginning_stays_for_a_window():
    policy = QueueDepth(target=5, max_replicas=10)
    assert decisions(policy, *[5] * 22, current=3) == [3] * 20 + [1] * 2


def test_up_at_most_to_twice_as_many_or_four_more():
    policy = QueueDepth(target=1, max_replicas=100)
    assert decisions(policy, 99, 99, 99, 99, 99) == [5, 10, 20, 40, 80]
    assert decisions(QueueDepth(target=1, max_replicas=100, step_up=3), 99, 99) == [4, 7]


def test_bounds_and_cooldowns():
    policy = QueueDepth(target=1, min_replicas=2, max_replicas=3, stabilization_down_s=0, cooldown_down_s=30)
    assert decisions(policy, 9, 0, 0, 0) == [3, 3, 2, 2]
    slow = QueueDepth(target=1, max_replicas=9, cooldown_up_s=30, step_up=1)
    assert decisions(slow, 9, 9, 9, 9) == [2, 2, 3, 3]


def test_a_rise_must_last_where_up_is_stabilized_too():
    policy = QueueDepth(target=1, max_replicas=9, stabilization_up_s=30, stabilization_down_s=0)
    assert decisions(policy, 1, 4, 4, 4, 4) == [1, 1, 1, 4, 4]


def test_to_zero_after_a_while_without_requests_and_back_when_somebody_waits():
    policy = QueueDepth(target=5, max_replicas=4, scale_to_zero=True, idle_s=45)
    assert decisions(policy, 1, 0, 0, 0, 0, 3, 0) == [1, 1, 1, 0, 0, 1, 1]


def test_a_schedule_holds_until_its_next_line_also_past_midnight():
    policy = Schedule(replicas_from={"08:00": 4, "20:30": 2}, max_replicas=9, start_hour=7.5)
    wanted = [policy.wanted([Snapshot(at_s=3600 * hours)], 1) for hours in (0, 0.5, 12.9, 13, 24.4, 24.5)]
    assert wanted == [2, 4, 4, 2, 2, 4]


def _arrivals(rate_at, until_s):
    """Snapshots every minute, with requests at a rate that depends on the minute."""
    seen, arrivals = [Snapshot()], 0
    for minute in range(int(until_s / 60)):
        arrivals += 60 * rate_at(minute)
        seen.append(Snapshot(at_s=60.0 * (minute + 1), arrivals=arrivals))
    return seen


def test_a_trend_goes_on():
    seen = _arrivals(lambda minute: 10 if minute < 5 else 20, 600)  # 10 a second, then 20: in 5 min 30, in 10 min 40
    assert Forecast(target=10, ahead_s=300, method="trend", max_replicas=9).wanted(seen, 2) == 3
    assert Forecast(target=10, ahead_s=600, method="trend", max_replicas=9).wanted(seen, 2) == 4


def test_a_season_repeats_itself():
    day = 24 * 60
    seen = _arrivals(lambda minute: 40 if minute % day >= 600 else 10, 86_400 + 600 * 60)
    forecast = Forecast(target=10, ahead_s=600, max_replicas=9)
    assert forecast.wanted(seen, 1) == 4  # at 10:00 of the second day, which had been 10 a second until then
    assert forecast.wanted(seen[: day // 2], 4) == 4  # no day before: the trend, which is level


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValidationError, match="min_replicas 3 is more than max_replicas 2"):
        QueueDepth(target=1, min_replicas=3, max_replicas=2)
    with pytest.raises(ValidationError, match="no time of day"):
        Schedule(replicas_from={"8 am": 1}, max_replicas=2)


@pytest.mark.parametrize(("sign", "extreme"), [(1, max), (-1, min)])
def test_the_extreme_wish_of_a_window_is_that_of_a_search(sign, extreme):
    draws = np.random.default_rng(4)
    times_s, wishes = np.cumsum(draws.exponential(1.0, 500)).tolist(), draws.integers(1, 9, 500).tolist()
    kept = _Extreme(5.0, sign)
    for place, (now_s, wish) in enumerate(zip(times_s, wishes, strict=True)):
        seen = zip(times_s[: place + 1], wishes[: place + 1], strict=True)
        assert kept.of(now_s, wish) == extreme(value for at_s, value in seen if at_s >= now_s - 5.0)
