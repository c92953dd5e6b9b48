import numpy as np
import pytest

from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.policy import kinds_of
from sim.sweep import Sweep
from sim.yamlfile import parse_yaml

EXPERIMENT = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB}
workload: {arrivals: {kind: poisson, rate: 4}, lengths: {kind: preset, name: chat}}
sweep: """


def sweep(text):
    return experiment_of(parse_yaml(EXPERIMENT + text, "exp.yaml")).sweep


def points(text):
    return list(sweep(text).settings())


def test_every_kind_is_known():
    assert sorted(kinds_of("sim.sweep", Sweep)) == ["grid", "latin_hypercube", "list", "sobol"]


def test_a_mapping_without_a_kind_is_a_grid_whose_last_axis_changes_fastest():
    assert points("{deployment.parallelism.tp: [2, 4], router.kind: [round_robin, least_loaded]}") == [
        {"deployment.parallelism.tp": 2, "router.kind": "round_robin"},
        {"deployment.parallelism.tp": 2, "router.kind": "least_loaded"},
        {"deployment.parallelism.tp": 4, "router.kind": "round_robin"},
        {"deployment.parallelism.tp": 4, "router.kind": "least_loaded"},
    ]


def test_a_list_is_taken_as_written():
    assert points("{kind: list, points: [{seed: 3}, {deployment.gpu: L40S, deployment.replicas: 2}]}") == [
        {"seed": 3},
        {"deployment.gpu": "L40S", "deployment.replicas": 2},
    ]


def test_latin_hypercube_has_one_point_in_each_part_of_every_axis():
    found = points("{kind: latin_hypercube, num_points: 8, a: {low: 0, high: 8}, b: {low: 1, high: 256, scale: log}}")
    assert sorted(int(point["a"]) for point in found) == list(range(8))
    assert sorted(int(np.log2(point["b"])) for point in found) == list(range(8))


def test_sobol_is_balanced_in_the_halves_of_every_axis_and_the_quarters_of_two():
    found = points("{kind: sobol, num_points: 16, a: {low: 0, high: 2}, b: [x, y], c: {low: 0, high: 2}}")
    cells = [(int(point["a"]), point["b"]) for point in found]
    assert {cell: cells.count(cell) for cell in cells} == {(0, "x"): 4, (0, "y"): 4, (1, "x"): 4, (1, "y"): 4}
    assert sum(int(point["c"]) for point in found) == 8


def test_whole_numbers_keep_their_type_and_their_bounds():
    found = [point["a"] for point in points("{kind: sobol, num_points: 64, a: {low: 1, high: 4, whole: true}}")]
    assert set(found) == {1, 2, 3, 4}
    assert {type(value) for value in found} == {int}


def test_a_design_depends_on_its_own_seed_only():
    text = "{kind: sobol, num_points: 4, design_seed: %d, a: {low: 0, high: 1}}"
    assert points(text % 1) == points(text % 1) != points(text % 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3", "exp.yaml:4: sweep: expected keys and values, got 3"),
        ("{deployment.gpu: L40S}", "exp.yaml:4: sweep.deployment.gpu: expected a list, got 'L40S'"),
        ("{deployment.gpu: []}", "exp.yaml:4: sweep.deployment.gpu: expected 1 or more items, got []"),
        ("{deployment..gpu: [L40S]}", "exp.yaml:4: sweep: 'deployment..gpu' is no path such as"),
        ("{kind: sobel, a: [1]}", "unknown kind 'sobel' (did you mean 'sobol'?)"),
        ("{kind: sobol, num_points: 6, a: [1]}", "a power of two, 4 or 8, not 6"),
        ("{kind: sobol, num_points: 4}", "no axis: write such as"),
        ("{kind: sobol, num_points: 4, a: {low: 2, high: 1}}", "a: high (1) must be above low (2)"),
        ("{kind: sobol, num_points: 4, a: {low: 0, high: 1, scale: log}}", "a: low (0) must be above 0"),
        ("{kind: sobol, num_points: 4, a: {low: 1, hihg: 2}}", "sweep.a.hihg: unknown key 'hihg' (did you mean 'high'"),
        ("{kind: latin_hypercube, a: [1]}", "missing key 'num_points'"),
        ("{kind: list, points: [3]}", "expected keys and values, got 3"),
    ],
)
def test_a_wrong_sweep_is_one_line(text, message):
    with pytest.raises(ConfigError) as raised:
        sweep(text)
    assert message in str(raised.value)
