import functools
import json

import pytest
from small_search import answer, experiment_in

from sim.errors import ConfigError, InfeasibleError
from sim.simulate import prepare
from sim.simulate.prices import gpu_price
from sim.study.bounds import Bounds
from sim.study.candidates import candidates_of
from sim.study.cheapest import find_cheapest
from sim.study.doubt import Doubt, deviates_of
from sim.study.fleet import Fleet
from sim.study.laboratory import Laboratory, altered
from sim.study.load import lengths_of, load_of
from sim.study.spread import spread_on
from sim.study.trial import Trial
from sim.study.workers import workers

SPACE = """\
{kind: cheapest, gpus: [H100-SXM-80GB, L40S], tp: [1, 2], precisions: [bf16], max_replicas: 5, replications: 1,
 knobs: {cost_model.base_s: [0.004, 0.008, 0.0115, 0.0125, 0.02],
         engine.scheduler.max_num_seqs: [2, 4, 8, 16, 64]}}"""
POISSON = "{kind: poisson, rate: 40}"
ONE = "{kind: cheapest, gpus: [H100-SXM-80GB], tp: [1], precisions: [bf16], max_replicas: 8}"


def exhaustive(experiment):
    """Return by accelerator the fewest of them that keep the SLO, of all deployments and all numbers of replicas."""
    search, laboratory, lengths = experiment.search, Laboratory(), lengths_of(experiment)
    load = load_of(experiment, None, None, search.peak_factor, lengths)
    trial = Trial(experiment, load, laboratory, search.confidence, search.replications, {})
    fewest, points = {}, 0
    for candidate in candidates_of(experiment, search):
        fleet, counts = Fleet(candidate, trial, lengths), range(search.min_replicas, search.max_replicas + 1)
        points += len(counts)
        nominal = [count for count in counts if fleet.test(count).met]
        if nominal:
            first = fleet.test(nominal[0])
            doubt = Doubt.of(first.runs[0].factors, deviates_of(search.confidence), first.noise or 0.0)
            sure = [count for count in nominal if fleet.test(count, doubt).met]
            if sure:
                gpus = sure[0] * candidate.gpus
                fewest[candidate.gpu] = min(gpus, fewest.get(candidate.gpu, gpus))
    return fewest, points


def test_the_pruner_never_drops_the_optimum_of_500_points(tmp_path):
    experiment = experiment_in(tmp_path, SPACE, arrivals=POISSON, requests=60)
    fewest, points = exhaustive(experiment)
    assert points == 500
    found = find_cheapest(experiment, Laboratory())
    assert {each.gpu: each.gpus for each in found.alternatives} == fewest
    prices = {gpu: gpu_price(altered(experiment, {"deployment.gpu": gpu})).usd_per_hour for gpu in fewest}
    assert found.best.usd_per_hour == pytest.approx(min(prices[gpu] * count for gpu, count in fewest.items()))
    assert len(found.dropped) == 100 - 2
    assert all(each.reason for each in found.dropped)
    assert found.runs < 250


@pytest.mark.parametrize("seed", range(4))
def test_no_run_is_better_than_the_bounds(tmp_path, seed):
    overrides = [f"seed={seed}", "slo={ttft_p50: 1 s, tpot_p95: 1 s, e2e_p90: 9 s, itl_p50: 1 s}"]
    experiment = experiment_in(tmp_path, "null", overrides=[*overrides, "workload.arrivals={kind: offline}"])
    bounds = Bounds(prepare(experiment), lengths_of(experiment))
    busiest = Laboratory().run(altered(experiment, {}))
    assert 1 / busiest.requests_per_s >= bounds.work_s
    calm = Laboratory().run(altered(experiment, {"workload.arrivals": {"kind": "poisson", "rate": 0.5}}))
    for clause in experiment.slo.clauses:
        assert 0 < bounds.least_s(clause) <= calm.values_s[clause.name], clause.name


def test_the_bound_on_work_is_close_to_what_a_full_replica_does(tmp_path):
    overrides = ["engine.scheduler.max_num_seqs=512", "engine.num_gpu_blocks_override=100000"]
    offline = [*overrides, "workload.arrivals={kind: offline}", "workload.num_requests=2000"]
    experiment = experiment_in(tmp_path, "null", overrides=offline)
    bounds = Bounds(prepare(experiment), lengths_of(experiment))
    assert 0.5 < bounds.work_s * Laboratory().run(altered(experiment, {})).requests_per_s < 1


def test_every_deployment_is_an_alternative_or_dropped_with_its_reason(tmp_path):
    search = """{kind: cheapest, gpus: [H100-SXM-80GB, L40S], tp: [1, 2, 3], precisions: [bf16, fp8], max_replicas: 3,
      knobs: {engine.num_gpu_blocks_override: [null, 4]}}"""
    found = answer(tmp_path, search, arrivals="{kind: poisson, rate: 10}")
    assert len(found.alternatives) + len(found.dropped) == 2 * 3 * 2 * 2
    stages = {each.stage for each in found.dropped}
    assert {"memory", "dominated"} <= stages
    assert any("do not divide by tp 3" in each.reason or "cannot be cut so" in each.reason for each in found.dropped)
    json.dumps(found.as_dict(), allow_nan=False)
    assert len({tuple(row) for row in found.rows()}) == 2


def test_the_smallest_tpot_drops_without_a_run(tmp_path):
    with pytest.raises(InfeasibleError, match=r"tpot_p90 is 8\.\d+ ms or more on an idle replica; at most 5 ms"):
        answer(tmp_path, ONE, slo="{tpot_p90: 5 ms}")


def test_cost_is_price_times_accelerators_over_tokens(tmp_path):
    found = answer(tmp_path, ONE[:-1] + ", spare_replicas: 1}", overrides=["prices.gpu_hour_usd=3.6"], arrivals=POISSON)
    best = found.best
    assert best.gpus == best.replicas + 1
    assert best.usd_per_hour == pytest.approx(3.6 * best.gpus)
    assert best.usd_per_month == pytest.approx(730 * 3.6 * best.gpus)
    assert best.usd_per_mtok == pytest.approx(best.usd_per_hour / 3600 / best.mean.output_tok_s * 1e6)
    assert best.mean.output_tok_s == pytest.approx(40 * 50, rel=0.4), "100 requests are few"
    low, high = best.gpus_interval
    assert low <= best.nominal_gpus <= best.replicas
    assert high is None or high >= best.replicas


def test_the_slo_holds_at_the_peak_and_the_mean_is_paid_for(tmp_path):
    calm = answer(tmp_path, ONE, arrivals=POISSON).best
    peak = answer(tmp_path, ONE[:-1] + ", peak_factor: 2}", arrivals=POISSON).best
    assert peak.replicas > calm.replicas
    assert peak.mean.output_tok_s == pytest.approx(calm.mean.output_tok_s, rel=0.1)
    users = "{population: 8, burst: 32, think_s: 1 s}"
    burst = answer(tmp_path, ONE[:-1] + f", users: {users}}}")
    assert (burst.load_unit, burst.load, burst.peak) == ("users", 8, 32)


def test_limits_put_an_alternative_behind(tmp_path):
    search = ONE.replace("[H100-SXM-80GB]", "[H100-SXM-80GB, L40S]")
    prices = "prices.gpu_hour_usd={H100-SXM-80GB: 1, L40S: 2}"
    best = answer(tmp_path, search, overrides=[prices]).best
    assert best.gpu == "H100-SXM-80GB"
    dear = next(each for each in answer(tmp_path, search, overrides=[prices]).alternatives if each.gpu == "L40S")
    assert dear.turning_usd_per_hour == pytest.approx(best.usd_per_month / 730 / dear.gpus)
    over = answer(tmp_path, search[:-1] + ", max_usd_per_month: 1}", overrides=[prices]).best
    assert over.over[0].startswith("$730.00 a month, above the limit of $1.00")


def test_low_precisions_only_where_they_are_written_and_with_the_caution(tmp_path):
    experiment = experiment_in(tmp_path, "{kind: cheapest, tp: [1]}")
    candidates = candidates_of(experiment, experiment.search)
    assert [each.settings["deployment.quantization.weights"] for each in candidates] == ["bf16", "fp8"]
    assert answer(tmp_path, ONE).caution == ""
    assert "test on your own failures" in answer(tmp_path, ONE.replace("[bf16]", "[bf16, int4]")).caution


def test_many_processes_find_the_same(tmp_path):
    search = ONE.replace("[H100-SXM-80GB]", "[H100-SXM-80GB, L40S, A100-SXM-80GB]")
    experiment = experiment_in(tmp_path, search, arrivals=POISSON)
    alone = find_cheapest(experiment, Laboratory())
    pool, done = workers("local", 2, None), []
    spread = functools.partial(spread_on, pool, lambda *part: done.append(part))
    together = find_cheapest(experiment, Laboratory(), spread)
    assert together == alone
    assert done[-1] == (3, 3)


def test_more_replicas_than_are_simulated_stand_for_their_share(tmp_path):
    experiment = experiment_in(tmp_path, ONE, arrivals="{kind: poisson, rate: 100}")
    lengths = lengths_of(experiment)
    load = load_of(experiment, None, None, 1.0, lengths)
    trial = Trial(experiment, load, Laboratory(), 0.9, 1, {})
    fleet = Fleet(candidates_of(experiment, experiment.search)[0], trial, lengths)
    run, times = fleet.run(100, 32)
    assert times == pytest.approx(2)
    assert run.requests_per_s == pytest.approx(50, rel=0.25)


def test_pools_are_not_compared(tmp_path):
    with pytest.raises(ConfigError, match="pools: deployments are compared as one pool"):
        answer(tmp_path, ONE, overrides=["pools=[{gpu: L40S}]"])


@pytest.mark.parametrize("section", ["autoscaler={kind: queue_depth, target: 4, max_replicas: 4}", "failures={}"])
def test_replicas_that_come_and_go_are_not_compared(tmp_path, section):
    with pytest.raises(ConfigError, match=f"{section.partition('=')[0]}: deployments are compared with all"):
        answer(tmp_path, ONE, overrides=[section])


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("{kind: cheapest, gpus: [H1000]}", "search.gpus: no profile 'H1000'"),
        ("{kind: cheapest, min_replicas: 4, max_replicas: 2}", r"max_replicas \(2\) is below min_replicas \(4\)"),
        ("{kind: cheapest, users: {population: 8, burst: 4}}", r"burst \(4\) must not be below population \(8\)"),
        ("{kind: cheapest, knobs: {engine..x: [1]}}", "'engine..x' is no path"),
        ("{kind: cheapst}", "did you mean 'cheapest'"),
    ],
)
def test_wrong_searches_are_one_line(tmp_path, search, message):
    with pytest.raises(ConfigError, match=message):
        answer(tmp_path, search)
