import itertools
import math
from types import SimpleNamespace

import pytest
from small_search import answer, experiment_in

from sim.errors import ConfigError, InfeasibleError
from sim.search.capacity import Capacity
from sim.study.capacity import _Search, find_capacity, steps_of
from sim.study.laboratory import Laboratory
from sim.study.load import lengths_of, load_of
from sim.study.trial import Trial

CONFIGURATIONS = {
    "rate": {},
    "bursty": {"arrivals": "{kind: gamma, rate: 4, cv: 2}"},
    "closed loop": {"arrivals": "{kind: closed_loop, concurrency: 4}"},
    "small pool": {"overrides": ["engine.num_gpu_blocks_override=60"]},
    "end to end": {"slo": "{e2e_p95: 3 s, itl_p95: 20 ms}"},
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_bisection_agrees_with_a_fine_grid(tmp_path, name):
    options = CONFIGURATIONS[name]
    search = "{kind: capacity, tolerance: 0.2, low: 1, high: 40, replications: 1}"
    found = answer(tmp_path, search, **options)
    experiment = experiment_in(tmp_path, search, **options)
    load = load_of(experiment, None, None, 1.0, lengths_of(experiment))
    trial = Trial(experiment, load, Laboratory(), 0.9, 1, {})
    grid = steps_of(experiment.search, whole=load.whole)
    met = [step for step in grid if trial.decide(step).met]
    assert abs(grid.index(found.capacity) - grid.index(max(met))) <= 1
    low, high = found.interval
    assert low <= found.at_confidence <= found.capacity <= high


def test_steps_are_of_the_tolerance_and_whole_where_they_count():
    rates = steps_of(Capacity(low=1, high=100, tolerance=0.02), whole=False)
    assert rates[1] / rates[0] == pytest.approx(1.02)
    users = steps_of(Capacity(low=1, high=1000, tolerance=0.02), whole=True)
    assert users[:60] == tuple(float(count) for count in range(1, 61))
    assert all(0.01 < after / before - 1 < 0.021 for before, after in itertools.pairwise(users[60:]))


def test_the_capacity_of_one_place_is_that_of_the_formula(tmp_path):
    """One request at a time, each of exactly 1 s, constant arrivals: the queue is empty up to 1 a second."""
    one = "{kind: fixed, input_tokens: 1, output_tokens: 100}"
    experiment = experiment_in(
        tmp_path,
        "{kind: capacity, tolerance: 0.01, low: 0.5, high: 2}",
        arrivals="{kind: constant, rate: 0.7}",
        slo="{e2e_p95: 1.2 s}",
        overrides=[
            f"workload.lengths={one}",
            "cost_model={kind: affine, base_s: 0.01}",
            "engine.scheduler={kind: chunked_prefill, max_num_seqs: 1}",
        ],
    )
    found = find_capacity(experiment, Laboratory())
    assert 0.99 <= found.capacity <= 1.01
    assert found.objective in ("e2e_p95", "overload")


def test_a_load_is_doubted_by_the_errors_of_its_own_regime():
    """Kept up to 100, by a model that is nine times off above 80 and right below: 80 is as sure as the model itself."""

    def decide(load, doubt):
        factors = {"ttft": 9.0} if load > 80 else {}
        return SimpleNamespace(
            met=load * doubt.longer("ttft") <= 100, noise=0.0, margin=0.0, objective="ttft_p95", sure=True, runs=(),
            typical=SimpleNamespace(factors=factors, values_s={}),
        )  # fmt: skip

    trial = SimpleNamespace(
        base=SimpleNamespace(name="two regimes"), slo=None,
        load=SimpleNamespace(amount=50.0, unit="concurrency", words="requests in flight"),
        confidence=0.9, laboratory=SimpleNamespace(runs=0), decide=decide,
    )  # fmt: skip
    found = _Search(trial, tuple(map(float, range(1, 1000)))).answer()
    assert found.capacity == 100
    assert found.at_confidence == found.interval[0] == 80
    assert found.interval[1] == 900


def test_goodput_and_availability_are_objectives(tmp_path):
    search = "{kind: capacity, tolerance: 0.1}"
    one = answer(tmp_path, search, slo="{tpot_p90: 12 ms}")
    same = answer(tmp_path, search, slo="{tpot_p50: 12 ms, goodput: 0.9}")
    assert same.capacity == pytest.approx(one.capacity, rel=0.11), "nine in ten are good where p90 is within the bound"
    assert same.run.shares["goodput"] >= 0.9
    refusing = ["engine.scheduler.max_num_queued_reqs=0"]
    loose = answer(tmp_path, search, slo="{tpot_p90: 1 s, availability: 0.9}", overrides=refusing)
    strict = answer(tmp_path, search, slo="{tpot_p90: 1 s, availability: 0.999}", overrides=refusing)
    assert strict.capacity < loose.capacity
    assert strict.objective == "availability"


def test_sessions_that_all_begin_at_once_have_no_rate(tmp_path):
    sessions = "{kind: sessions, rate: 0.5, think_s: 5, system_tokens: 20, input_tokens: 50, output_tokens: 20}"
    search = "{kind: capacity, tolerance: 0.5, replications: 1, low: 0.1, high: 200}"
    found = answer(tmp_path, search, arrivals=sessions, slo="{ttft_p90: 2 s}", overrides=["workload.lengths=null"])
    assert found.objective in ("too short", "overload", "ttft_p90")
    assert 1 < found.capacity < 100


def test_users_are_active_and_think(tmp_path):
    """Users who think for 9 s and wait for about 1 s send as many requests as a tenth of them who never think."""
    busy = answer(tmp_path, "{kind: capacity, users: {population: 4}, tolerance: 0.15, high: 400}")
    think = answer(tmp_path, "{kind: capacity, users: {population: 4, think_s: 4 s}, tolerance: 0.15, high: 400}")
    users = "{population: 4, think_s: 4 s, active_share: 0.5}"
    half = answer(tmp_path, f"{{kind: capacity, users: {users}, tolerance: 0.15, high: 400}}")
    assert (busy.unit, busy.load_words) == ("users", "users")
    assert 4 < think.capacity / busy.capacity < 15
    assert half.capacity == pytest.approx(2 * think.capacity, rel=0.35)


def test_an_slo_that_nothing_keeps_says_what_comes_close(tmp_path):
    with pytest.raises(InfeasibleError, match=r"tpot_p90 of at most 1 ms; 8.*Nearest that fits: tpot_p90: 8"):
        answer(tmp_path, "{kind: capacity, low: 0.01}", slo="{tpot_p90: 1 ms}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overrides": ["slo=null"]}, "slo: missing"),
        ({"arrivals": "{kind: offline}"}, "offline has no load that could be more or less"),
        ({"overrides": ["search.of=users"]}, "search.users: missing"),
    ],
)
def test_what_cannot_be_searched_is_one_line(tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        answer(tmp_path, "{kind: capacity}", **options)


def test_a_search_can_be_cancelled_and_goes_on_from_the_cache(tmp_path):
    from sim.study.cache import Cache

    def stop(runs):
        if runs == 3:
            raise KeyboardInterrupt

    search = "{kind: capacity, tolerance: 0.1}"
    cache = Cache(tmp_path / "cache")
    with pytest.raises(KeyboardInterrupt):
        find_capacity(experiment_in(tmp_path, search), Laboratory(cache, stop))
    known = len(list((tmp_path / "cache").rglob("*.json")))
    assert known == 3
    again = find_capacity(experiment_in(tmp_path, search), Laboratory(cache))
    assert again == find_capacity(experiment_in(tmp_path, search), Laboratory())
    assert math.isfinite(again.capacity)


@pytest.mark.parametrize(("think_s", "words"), [(0, "requests in flight"), (2, "users")])
def test_users_who_pause_are_not_all_in_flight(tmp_path, think_s, words):
    arrivals = f"{{kind: closed_loop, concurrency: 4, think_s: {think_s}}}"
    found = answer(tmp_path, "{kind: capacity, tolerance: 0.5, replications: 1}", arrivals=arrivals)
    assert (found.unit, found.load_words) == ("concurrency", words)
