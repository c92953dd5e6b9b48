import pytest

from calibration.cases.overload import confusion, measured_overload, simulated_overload
from calibration.cases.serving import ServingCase
from calibration.report import validation
from calibration.validation.summary import summary_of_cases
from sim.errors import ConfigError
from sim.experiment import experiment_of
from sim.simulate import simulate
from sim.yamlfile import Document

SENT = {"load_type": "rate", "load_value": "10", "num_requests": "6000"}  # for ten minutes
ANSWERED = {"req_s": "9.9", "ttft_mean_ms": "50", "e2e_mean_ms": "2000"}


def case(**cells):
    return ServingCase(SENT | ANSWERED | cells)


@pytest.mark.parametrize(
    ("cells", "overloaded"),
    [
        ({}, False),
        ({"quality": "overload"}, True),
        ({"completed": "5600"}, True),  # 6.7 % got no answer
        ({"req_s": "9.3"}, True),
        ({"req_s": "9.5"}, False),  # 6,000 requests in 600 s and one answer of 1.95 s: 9.97 a second, 5 % of it are 0.5
        ({"ttft_mean_ms": "61000", "e2e_mean_ms": "63000"}, True),  # a tenth of the ten minutes
        ({"load_type": "concurrency", "req_s": "1"}, None),
        ({"load_value": "inf"}, None),
        ({"num_requests": "60", "req_s": "4", "ttft_mean_ms": ""}, None),  # six seconds are no five answers
        ({"num_requests": "200", "req_s": "8.2"}, False),  # 18.2 expected in 21.95 s, of which 12 % are chance
        ({"req_s": "", "output_tok_s": "900", "output_len": "100"}, True),
        ({"req_s": ""}, None),
        ({"e2e_mean_ms": "", "tpot_mean_ms": "20", "output_len": "98.5"}, False),
    ],
)
def test_a_run_is_overloaded_where_requests_come_faster_than_answers(cells, overloaded):
    assert measured_overload(case(**cells)) is overloaded


@pytest.mark.parametrize(("rate", "overloaded"), [(5, False), (20, True)])
def test_a_simulated_run_is_judged_by_the_same_rule(rate, overloaded):
    """One request at a time takes 100 ms, so that ten a second are the most."""
    data = {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "deployment": {"gpu": "H100-SXM-80GB"},
        "engine": {"scheduler": {"kind": "chunked_prefill", "max_num_seqs": 1}, "num_gpu_blocks_override": 100},
        "cost_model": {"kind": "affine", "base_s": 0.01},
        "workload": {
            "arrivals": {"kind": "poisson", "rate": rate},
            "lengths": {"kind": "fixed", "input_tokens": 10, "output_tokens": 10},
            "num_requests": 400,
        },
    }
    result = simulate(experiment_of(Document(data, "test", ConfigError, {})))
    assert simulated_overload(case(load_value=str(rate)), result) is overloaded
    assert simulated_overload(case(load_type="concurrency"), result) is None


def entry(measured, simulated, error, skipped=None):
    return {
        "engine": "vllm",
        "gpu": "g",
        "model": "m",
        "inside": {},
        "skipped": skipped,
        "error_pct": {"ttft_mean_ms": error, "tpot_mean_ms": error},
        "overload": {"measured": measured, "simulated": simulated},
    }


CASES = [
    entry(True, True, -90.0),
    entry(True, False, -70.0),
    entry(False, False, 2.0),
    entry(None, None, 4.0),
    entry(True, True, 50.0, skipped="why"),
]


def test_the_counts_say_what_overloaded_runs_are_simulated_as():
    found = confusion(CASES)
    assert found["all"] == found["engine vllm"]
    assert found["all"]["overloaded"] == {"overloaded": 1, "kept_up": 1, "unclear": 0}
    assert found["all"]["kept_up"] == {"overloaded": 0, "kept_up": 1, "unclear": 0}


def test_first_tokens_of_overloaded_runs_stand_apart_and_nothing_is_lost():
    summary = summary_of_cases(CASES)
    assert (summary["all"]["ttft_mean_ms"]["n"], summary["all"]["ttft_mean_ms"]["mape"]) == (2, 3.0)
    assert summary["engine vllm"]["ttft_mean_ms"]["n"] == 2
    assert summary["overloaded"]["ttft_mean_ms"]["mape"] == 80.0
    assert summary["all, overloaded ones too"]["ttft_mean_ms"]["n"] == 4
    assert summary["all"]["tpot_mean_ms"]["n"] == 4


def test_the_table_has_a_line_of_them():
    shown = validation({"cases": CASES, "summary": summary_of_cases(CASES)})
    assert "tell how long it lasted" in shown
    assert [line.split() for line in shown.splitlines() if line.startswith("all ") and "/" not in line] == [
        ["all", "2", "1", "1", "0", "1", "1", "0", "0"]
    ]
