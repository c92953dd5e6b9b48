import math

import numpy as np
import pytest

from calibration import report
from calibration.cases.serving import ServingCase
from calibration.fitting.fit import fit_cases, fit_points
from calibration.fitting.fitted import fit_constants
from calibration.fitting.points import points_of
from calibration.fitting.priors import Prior, about, priors_for
from calibration.fitting.problem import Problem
from sim.errors import UserError
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import EngineConstants
from sim.profiles.library import load_calibrated_engine

TRUE = {
    "host_per_iteration_s": 2.0e-3,
    "host_per_sequence_s": 25e-6,
    "delay_fixed_s": 12e-3,
    "delay_per_prompt_token_s": 6e-6,
}


def case(name, prompt, answer, users, **cells):
    return ServingCase(
        {
            "case_id": name,
            "engine": "vllm",
            "engine_version": "0.15.1",
            "gpu": "H100-SXM-80GB",
            "n_gpus": "1",
            "tp": "1",
            "mode": "agg",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "weight_dtype": "bf16",
            "input_len": str(prompt),
            "output_len": str(answer),
            "load_type": "concurrency",
            "load_value": str(users),
            "num_requests": str(3 * users),
            "quality": "ok",
            **cells,
        }
    )


def constants(values, overlapped):
    made = {name: Constant(value=value, bounds=(0, 1)) for name, value in values.items()}
    return EngineConstants(overlapped=overlapped, constants=made, fit=Fit(source="true"))


def measured(cases, noise, overlapped=False):
    """Return *cases* with what the simulation gives for `TRUE`, times *noise* of its latencies."""
    truth = constants(TRUE, overlapped)
    made = []
    for point, factors in zip(points_of(cases)[0], noise, strict=True):
        predicted = point.predicted(truth)
        cells = {
            name: str(predicted[name] * factor)
            for name, factor in zip(("ttft_mean_ms", "tpot_mean_ms"), factors, strict=True)
        }
        made.append(ServingCase({**point.case.row, **cells}))
    return made


def test_known_constants_come_back_within_their_intervals_despite_outliers():
    shapes = [(prompt, 64, users) for prompt in (128, 1024, 3000) for users in (1, 4, 12, 24)]
    cases = [case(f"run {index}", *shape) for index, shape in enumerate(shapes)]
    random = np.random.default_rng(3)
    noise = np.exp(random.normal(0, 0.01, (len(cases), 2)))
    noise[4] *= 1.6  # one in twelve, 8 % of the runs
    points, refused = points_of(measured(cases, noise))
    assert not refused
    priors = priors_for(points[0].setup.version)
    fitted = fit_constants(Problem(points, priors, overlapped=False), "synthetic")
    found = fitted.constants.constants
    for name, value in TRUE.items():
        low, high = found[name].value - 2.6 * found[name].stderr, found[name].value + 2.6 * found[name].stderr
        assert low <= value <= high, name
    assert found["host_per_iteration_s"].value == pytest.approx(2.0e-3, rel=0.2)
    assert found["delay_fixed_s"].value == pytest.approx(12e-3, rel=0.3)


OF_PROMPTS = {"compute_factor", "host_per_prefill_s", "delay_per_prompt_token_s"}


@pytest.mark.parametrize(
    ("prompts", "untold"), [((128,), OF_PROMPTS), ((128, 1000, 4000), OF_PROMPTS - {"compute_factor"})]
)
def test_runs_with_one_prompt_length_cannot_tell_what_prompts_cost(prompts, untold):
    cases = [case(f"{prompt} {users}", prompt, 32, users) for prompt in prompts for users in (1, 2, 4, 8)]
    points, _ = points_of(measured(cases, np.ones((len(cases), 2))))
    fitted = fit_constants(Problem(points, priors_for(points[0].setup.version), overlapped=False), "synthetic")
    assert set(fitted.unknown) & OF_PROMPTS == untold
    assert "host_per_iteration_s" not in fitted.unknown


def test_every_fifth_run_is_kept_back_and_the_better_way_of_host_time_is_chosen():
    cases = [case(f"run {users}", 256, 24, users) for users in (1, 2, 3, 4, 6, 8, 10)]
    outcome = fit_points("vllm", points_of(measured(cases, np.ones((7, 2))))[0], "synthetic")
    assert (len(outcome.used), len(outcome.held_out)) == (6, 1)
    assert outcome.fitted.constants.overlapped is False
    assert outcome.on_held_out["tpot_mean_ms"]["mape"] < 3 < outcome.before["tpot_mean_ms"]["mape"]
    assert outcome.published.fit.median_error < 0.05


def test_a_factor_is_lognormal_and_other_constants_are_normal():
    factor, seconds = Prior("memory_factor", 1.0, 0.5, 0.02, 3.0), Prior("delay_fixed_s", 2e-3, 1e-3, 0.0, 0.2)
    assert factor.at(-2.0) == pytest.approx(math.exp(-1.0))
    assert factor.place(factor.at(-2.0)) == pytest.approx(-2.0)
    assert factor.error(0.5, 0.2) == pytest.approx(0.05)
    assert (seconds.at(1.5), seconds.at(-9.0), seconds.error(0.5, 9.0)) == (3.5e-3, 0.0, 0.5e-3)


def test_priors_are_about_the_constants_that_come_along():
    priors = (Prior("memory_factor", 1.0, 0.05, 0.5, 1.5), Prior("delay_fixed_s", 2e-3, 5e-3, 0.0, 0.2))
    shipped = constants({"memory_factor": 0.9, "delay_fixed_s": 11e-3}, True)
    factor, delay = about(priors, shipped)
    assert (factor.mean, factor.deviation) == (0.9, 0.05)
    assert (delay.mean, delay.deviation) == (11e-3, 11e-3)  # as uncertain as it is long
    assert about(priors, constants({}, None)) == priors


def test_users_runs_that_are_as_shipped_constants_have_them_change_nothing():
    cases = [case(f"run {users}", 256, 24, users) for users in (1, 2, 4, 8)]
    points = points_of(cases)[0]
    shipped = load_calibrated_engine("vllm").of("0.15.1", points[0].setup.hardware)
    made = []
    for point in points:
        predicted = point.predicted(shipped)
        cells = {name: str(predicted[name]) for name in ("ttft_mean_ms", "tpot_mean_ms")}
        made.append(ServingCase({**point.case.row, **cells}))
    outcome = fit_cases(made, "synthetic", 60)
    assert {prior.mean for prior in outcome.priors} <= {found.value for found in shipped.constants.values()}
    assert outcome.fitted.constants.overlapped == shipped.overlapped
    assert outcome.before["tpot_mean_ms"]["mape"] < 0.01
    for name, found in outcome.fitted.constants.constants.items():
        assert found.value == pytest.approx(shipped.constants[name].value, rel=1e-3)


def test_a_search_begins_near_other_constants():
    points = points_of(measured([case(f"run {users}", 256, 24, users) for users in (1, 4, 8)], np.ones((3, 2))))[0]
    problem = Problem(points, priors_for(points[0].setup.version), overlapped=False)
    near = constants(TRUE, False)
    there = dict(zip((prior.name for prior in problem.priors), problem.values(problem.place(near)), strict=True))
    assert {name: there[name] for name in TRUE} == pytest.approx(TRUE)
    assert fit_constants(problem, "synthetic", 1, near).place == pytest.approx(problem.place(near))


def test_kernels_that_nobody_timed_may_be_ten_times_as_slow():
    shapes = [(prompt, 64, batch) for prompt in (256, 2000) for batch in (1, 8, 32)]
    batches = [case(f"batch {place}", *shape, load_type="batch") for place, shape in enumerate(shapes)]
    points = points_of(batches)[0]
    slow = constants({"memory_factor": 0.1, "compute_factor": 0.1}, False)
    made = [ServingCase({**each.case.row, "e2e_mean_ms": str(each.predicted(slow)["e2e_mean_ms"])}) for each in points]
    points = points_of(made)[0]
    problem = Problem(points, priors_for(points[0].setup.version, 0.5), overlapped=False)
    found = fit_constants(problem, "synthetic", 20).constants.constants
    assert found["memory_factor"].value == pytest.approx(0.1, rel=0.15)
    assert found["compute_factor"].value == pytest.approx(0.1, rel=0.3)


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([case("a", 128, 8, 1, tpot_mean_ms="8")], "1 run can be fitted, at least 3 at different loads are needed"),
        (
            [case("a", 128, 8, 1, gpu="H1", tpot_mean_ms="8")],
            "0 runs can be fitted, at least 3 at different loads are needed: no hardware profile for 'H1'; write one",
        ),
    ],
)
def test_too_few_runs_have_a_reason_only_where_one_was_refused(cases, message):
    with pytest.raises(UserError) as refusal:
        fit_cases(cases, "synthetic", 60)
    assert str(refusal.value).removesuffix(" (docs/extending.md)") == message


LENGTHS, MEAN = "answers of one length vary by 15 %", "all prompts and answers as long as the mean"


def test_a_report_says_what_was_left_out_repeated_and_assumed():
    loads = [case(f"run {users}", 256, 24, users, weight_dtype="", ttft_mean_ms="30") for users in (1, 2, 16)]
    tpots = [ServingCase({**each.row, "tpot_mean_ms": "8"}) for each in loads]
    again = ServingCase({**tpots[-1].row, "case_id": "again", "tpot_mean_ms": "18"})
    outcome = fit_cases([*tpots, again, case("other", 256, 24, 4, gpu="H1", tpot_mean_ms="8")], "synthetic", 60)
    lines = report.fit(outcome).splitlines()
    assert lines[0] == "vllm: 3 runs fitted, 0 kept back"
    assert lines[1] == "1 more repeats the load of another: the mean is fitted"
    assert lines[2] == "1 of 5 runs is left out:"
    assert lines[5] == f"assumed: weights as in the checkpoint in 3 of 3 runs; {LENGTHS} in 2 of 3; {MEAN} in 1 of 3"
    measured = {row.measured for row in outcome.rows if row.metric == "tpot_mean_ms"}
    assert sorted(measured) == pytest.approx([8.0, 12.0])
    assert report.fit_html(outcome).count("assumed: weights") == 1
    assert [name for name, *_ in outcome.residual_rows()][:3] == ["concurrency 1", "concurrency 2", "concurrency 16"]


def test_runs_of_throughput_alone_are_not_fitted():
    cases = [case(f"run {users}", 256, 24, users, output_tok_s="500") for users in (1, 2, 4)]
    with pytest.raises(UserError, match="0 runs can be fitted.*: no mean or median latency was measured"):
        fit_cases(cases, "synthetic", 60)


def test_runs_on_several_accelerators_are_told():
    gpus = ("H100-SXM-80GB", "H100-SXM-80GB", "L40S")
    cases = [case(f"run {users}", 64, 8, users, gpu=gpu, tpot_mean_ms="9") for users, gpu in enumerate(gpus, 1)]
    lines = report.fit(fit_cases(cases, "synthetic", 60)).splitlines()
    assert lines[1].startswith("runs on several accelerators (H100-SXM-80GB 2, L40S 1) share one set of constants")
