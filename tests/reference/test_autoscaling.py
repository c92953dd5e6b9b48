"""A morning with a peak: what scaling by the right metric holds, the wrong one does not, nor does a slow start."""

from functools import cache

from conftest import ROOT

from sim.experiment import load_experiment
from sim.simulate import simulate


@cache
def morning(autoscaler="{kind: queue_depth, target: 40, max_replicas: 8}", cold_start_s=30):
    changes = (f"autoscaler={autoscaler}", f"lifecycle.cold_start_s={cold_start_s}", "workload.num_requests=15000")
    summary = simulate(load_experiment(ROOT / "experiments/autoscaling_day.yaml", changes)).summary
    assert summary.served.completed == 15_000
    return summary


def test_queue_depth_holds_the_slo_where_cpu_utilization_does_not():
    queue, cpu = morning(), morning("{kind: cpu_utilization, max_replicas: 8}")
    assert queue.objectives["ttft_p95"].met
    assert not cpu.objectives["ttft_p95"].met
    assert cpu.fleet.scale_events == 0
    assert cpu.fleet.gpu_hours < queue.fleet.gpu_hours < 3 * cpu.fleet.gpu_hours


def test_gpu_utilization_takes_nearly_all_replicas_there_are():
    gpu = morning("{kind: gpu_utilization, max_replicas: 8}")
    assert gpu.objectives["ttft_p95"].met
    assert gpu.fleet.gpu_hours > 4 * morning().fleet.gpu_hours


def test_a_cold_start_of_five_minutes_breaks_what_half_a_minute_holds():
    slow = morning(cold_start_s=300)
    assert not slow.objectives["ttft_p95"].met
    assert slow.fleet.gpu_hours > morning().fleet.gpu_hours
