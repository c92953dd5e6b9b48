import math

import pytest

from sim.slo import SLO
from sim.study.decision import decide
from sim.study.doubt import NOMINAL, Doubt, deviates_of
from sim.study.measure import Measured

TPOT = SLO({"tpot_p95": 0.040})
FACTORS = {"ttft": 3.0, "tpot": 1.5, "itl": 1.5, "e2el": 1.2, "throughput": 1.5}


def run(value_s, error=0.01, *, overloaded=False):
    values_s, errors = {"tpot_p95": value_s}, {"tpot_p95": error}
    return Measured(values_s, errors, {}, "", overloaded, not overloaded, 1, {}, None, 1, 1, 1, "", "", 0, {})


def decided(values_s, error=0.01, most=5, doubt=NOMINAL):
    return decide(lambda replication: run(values_s[replication], error), TPOT, doubt, 0.9, most)


def test_one_run_is_enough_beyond_its_noise():
    decision = decided([0.036])
    assert decision.met
    assert decision.sure
    assert decision.margin == pytest.approx(math.log(40 / 36))
    assert len(decision.runs) == 1


def test_close_calls_take_more_runs_and_say_when_they_stay_unsure():
    assert len(decided([0.0396, 0.0396, 0.0396], error=0.01).runs) == 2, "1.383 x 0.01 > ln(40 / 39.6) > 1.330 x 0.0071"
    decision = decided([0.0396, 0.0405, 0.0397, 0.0402], error=0.02, most=4)
    assert not decision.sure
    assert len(decision.runs) == 4


def test_without_batches_the_spread_of_the_runs_tells():
    decision = decided([0.030, 0.0302, 0.0301], error=None)
    assert len(decision.runs) == 2
    assert decision.met
    assert decision.noise == pytest.approx(math.log(302 / 300) / 2)


def test_an_overload_is_missed_at_once():
    decision = decide(lambda _: run(0.010, overloaded=True), TPOT, NOMINAL, 0.9, 5)
    assert (decision.met, decision.objective, len(decision.runs)) == (False, "overload", 1)


def test_answers_that_never_come_are_missed():
    decision = decided([math.inf])
    assert (decision.met, decision.margin) == (False, -math.inf)


def test_nine_in_ten_machines_are_faster_than_the_doubtful_one():
    doubt = Doubt.of(FACTORS, deviates_of(0.95))
    assert doubt.slower == pytest.approx(1.5)
    assert doubt.longer("ttft") == pytest.approx(3.0)
    assert doubt.longer("e2el") == pytest.approx(1.5), "no latency is known better than the speed"
    assert not decided([0.030], doubt=doubt).met
    assert decided([0.026], doubt=doubt).met
    assert Doubt.of({}, deviates_of(0.95), noise=0.1).longer("ttft") == pytest.approx(math.exp(0.16449), rel=1e-3)
