import math

import numpy as np
import pytest
from handmade import two_answers
from pydantic import ValidationError

from sim.metrics.latency import Sample
from sim.slo import SLO


def latencies(**times_s):
    return {name: Sample.of(np.array(times_s.get(name, [math.nan]))) for name in ("ttft", "tpot", "itl", "e2el")}


def test_clauses_are_read_with_their_units():
    slo = SLO.model_validate({"ttft_p95": "2 s", "tpot_p99.9": "50 ms", "e2e_p50": 30})
    assert [(clause.latency, clause.percent, clause.bound_s) for clause in slo.clauses] == [
        ("ttft", 95.0, 2.0),
        ("tpot", 99.9, 0.05),
        ("e2el", 50.0, 30.0),
    ]


@pytest.mark.parametrize("name", ["ttft_p49", "ttft_p100", "ttft", "e2el_p99", "tpot_p99.99", "TTFT_p95"])
def test_an_unknown_objective_is_refused_with_the_closest(name):
    with pytest.raises(ValidationError, match=r"is no objective: .*_p50 to _p99\.9.*did you mean"):
        SLO.model_validate({name: "1 s"})


@pytest.mark.parametrize("bound", ["0 s", -1, "5 parsecs", math.inf, math.nan])
def test_an_impossible_bound_is_refused(bound):
    with pytest.raises(ValidationError):
        SLO.model_validate({"ttft_p95": bound})


def test_each_clause_is_judged_by_its_percentile():
    slo = SLO.model_validate({"ttft_p50": "2 s", "ttft_p90": "2 s"})
    met = slo.met(latencies(ttft=[1.0, 2.0, 3.0]))
    assert {name: (judged.value_s, judged.met) for name, judged in met.items()} == {
        "ttft_p50": (2.0, True),
        "ttft_p90": (pytest.approx(2.8), False),
    }
    assert met["ttft_p90"].share_within == pytest.approx(2 / 3)


def test_without_gaps_a_bound_on_them_is_met_but_without_answers_none_on_ttft_is():
    met = SLO.model_validate({"itl_p99": "1 ms", "ttft_p99": "1 ms"}).met(latencies())
    assert (met["itl_p99"].met, met["ttft_p99"].met) == (True, False)


def test_goodput_counts_requests_within_every_bound():
    requests, _ = two_answers()  # TTFT 0.5 and 0.75 s, TPOT 0.375 and 0.208 s, the third rejected
    assert SLO.model_validate({"ttft_p95": "600 ms"}).good(requests).tolist() == [True, False, False]
    assert SLO.model_validate({"ttft_p95": "1 s", "itl_p99": "300 ms"}).good(requests).tolist() == [False, True, False]
    assert SLO().good(requests).tolist() == [True, True, False]


def test_shares_of_all_requests_are_objectives_too():
    requests, _ = two_answers()
    slo = SLO.model_validate({"ttft_p95": "600 ms", "goodput": 0.3, "availability": 0.9})
    assert [clause.name for clause in slo.clauses] == ["ttft_p95"]
    found = slo.shares_met(requests)
    assert {name: (judged.value, judged.met) for name, judged in found.items()} == {
        "goodput": (pytest.approx(1 / 3), True),
        "availability": (pytest.approx(2 / 3), False),
    }
    assert slo.worst_ratio(requests).tolist() == pytest.approx([0.5 / 0.6, 0.75 / 0.6, math.inf])
    with pytest.raises(ValidationError, match="goodput is a share of the requests, at most 1, not 95"):
        SLO.model_validate({"ttft_p95": "600 ms", "goodput": 95})


def test_the_schema_tells_an_editor_which_names_there_are():
    schema = SLO.model_json_schema()
    assert list(schema["patternProperties"]) == [
        r"^((ttft|tpot|itl|e2e)_p([5-9]\d(?:\.\d)?)|goodput|availability)$"
    ]
