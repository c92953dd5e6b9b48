"""One node is lost at peak: N replicas against N + 1."""

from conftest import ROOT

from sim.experiment import load_experiment
from sim.simulate import simulate


def fleet_of(replicas):
    changes = (f"deployment.replicas={replicas}", "workload.num_requests=9000")
    summary = simulate(load_experiment(ROOT / "experiments/node_loss_at_peak.yaml", changes)).summary
    assert summary.served.completed == 9000
    assert summary.fleet is not None
    assert summary.fleet.replica_losses == 1
    assert summary.fleet.retries > 0
    return summary.fleet


def test_one_spare_holds_the_slo_through_the_loss_of_a_node():
    assert fleet_of(3).degraded_good_share < 0.1
    assert fleet_of(4).degraded_good_share > 0.97
