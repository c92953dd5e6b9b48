"""What is known of two deployments, and that the comparison says why; the experiments are those that come along."""

from conftest import ROOT

from sim.experiment import load_experiment
from sim.study.compare import compare, play_seeds

FOLDER = ROOT / "experiments" / "comparisons"


def sides_of(name, **variations):
    """Play an experiment once as it is, and once with each of the *variations*."""
    settings = {"": [], **variations}
    experiments = {key: load_experiment(FOLDER / f"{name}.yaml", overrides) for key, overrides in settings.items()}
    return compare([play_seeds(key or each.name, each, (1,)) for key, each in experiments.items()])


def test_one_h200_against_one_h100_is_room_for_the_kv_cache():
    comparison = sides_of("70b_one_card", H200=["deployment.gpu=H200"])
    assert 3.5 < comparison.differences[0]["output_throughput"].ratio < 6  # published: about 4.6
    assert "1 x H100 has a queue for KV blocks" in "\n".join(comparison.sentences())
    assert comparison.base.anatomy.waits["KV blocks"] > 0.9


def test_two_of_tp4_serve_more_than_one_tp8_which_holds_more_context():
    one = ["deployment.parallelism.tp=8", "deployment.replicas=1"]
    comparison = sides_of("70b_eight_h100", one=one)
    assert comparison.differences[0]["mean_tpot_ms"].ratio > 1.2
    assert comparison.differences[0]["request_goodput"].ratio < 0.95
    two, one = (side.anatomy for side in comparison.sides)
    assert one.kv_tokens > two.kv_tokens  # in one place, at that
    assert one.operations_s["all-reduce"] > two.operations_s["all-reduce"]


def test_a_pipeline_beats_tensor_parallelism_over_pcie():
    comparison = sides_of("70b_eight_l4", stages=["deployment.parallelism={tp: 2, pp: 4}"])
    assert comparison.differences[0]["output_throughput"].ratio > 1.2
    assert "less in all-reduce" in "\n".join(comparison.sentences())


def test_fewer_bits_save_time_in_matrix_products():
    comparison = sides_of("70b_precision", fp8=["deployment.quantization.weights=fp8"])
    assert 1.1 < comparison.differences[0]["output_throughput"].ratio < 1.6
    bf16, fp8 = (side.anatomy for side in comparison.sides)
    saved_s = bf16.iteration_s - fp8.iteration_s
    assert bf16.operations_s["matrix products"] - fp8.operations_s["matrix products"] > 0.8 * saved_s
