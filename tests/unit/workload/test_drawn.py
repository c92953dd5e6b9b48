"""Requests that exist only while they are served leave the same rows as those that are made in advance."""

import numpy as np
import pytest

from sim.cluster import cluster
from sim.experiment import experiment_of
from sim.metrics.rows import RequestRows
from sim.request import Request, Status
from sim.simulate import simulate
from sim.workload import workload
from sim.workload.drawn import Drawn
from sim.yamlfile import parse_yaml

CASES = {
    "one model": "deployment: {gpu: H100-SXM-80GB, replicas: 3}",
    "two models": """
deployment: {gpu: H100-SXM-80GB}
pools: [{name: a, share: 0.3}, {name: b, model: Qwen/Qwen3-4B, share: 0.7, replicas: 2}]
""",
    "some fail": """
deployment: {gpu: H100-SXM-80GB, replicas: 2}
failures: {events: [{what: replica, which: 1, at_s: 10, for_s: 5}], in_flight: fail}
""",
}


def experiment(case):
    text = f"""
model: Qwen/Qwen3-8B
{CASES[case]}
engine:
  version: "0.19"
  num_gpu_blocks_override: 400
  request_timeout_s: 5
  scheduler: {{kind: chunked_prefill, max_num_queued_reqs: 4}}
cost_model: {{kind: affine, base_s: 0.008, per_token_s: 2.0e-5, per_context_token_s: 2.2e-8}}
workload:
  num_requests: 400
  arrivals: {{kind: poisson, rate: 12}}
  lengths: {{kind: preset, name: chat}}
"""
    return experiment_of(parse_yaml(text, "drawn.yaml"))


def columns_of(rows):
    return {
        name: np.asarray(getattr(rows, name)).tolist()
        for name in rows.__dataclass_fields__
        if not name.startswith("odd_")
    }


def numbers_of(result):
    values = result.summary.as_dict()
    return {key: value for key, value in values.items() if isinstance(value, float) and key != "wall_s"}


@pytest.mark.parametrize("case", CASES)
def test_rows_are_the_same(case, monkeypatch):
    made = simulate(experiment(case))
    monkeypatch.setattr(workload, "_MANY", 1)
    monkeypatch.setattr(cluster, "_PUT_AWAY", 50)
    drawn = simulate(experiment(case))
    assert repr(columns_of(drawn.requests)) == repr(columns_of(made.requests))
    assert columns_of(drawn.strides) == columns_of(made.strides)
    assert {Status.COMPLETED, Status.REJECTED} <= set(made.requests.status.tolist())
    assert numbers_of(drawn) == pytest.approx(numbers_of(made), rel=1e-12, nan_ok=True)


def test_requests_are_made_of_their_columns():
    drawn = Drawn([0.0, 0.5, 2.0], [3, 4, 5], [1, 2, 3])
    assert [(each.index, each.arrival_s, each.input_tokens, each.output_tokens) for each in drawn] == [
        (0, 0.0, 3, 1),
        (1, 0.5, 4, 2),
        (2, 2.0, 5, 3),
    ]
    assert ([each.index for each in drawn[1:]], drawn[-1].index, len(drawn)) == ([1, 2], 2, 3)
    assert drawn.total_tokens.tolist() == [4, 6, 8]
    with pytest.raises(IndexError):
        drawn[3]


def test_what_was_given_up_is_written_at_last():
    drawn = Drawn([0.0, 1.0], [3, 4], [1, 2])
    first, second = Request(0, 3, 1), Request(1, 4, 2)
    first.status, first.last_token_s = Status.COMPLETED, 0.25
    drawn.ended(first)
    second.status, second.reason = Status.FAILED, "nobody waited"
    drawn.ended(second)
    second.emitted_tokens = 1  # in the iteration that was under way
    rows = RequestRows.of(drawn)
    assert (rows.last_token_s[0], rows.emitted_tokens.tolist()) == (0.25, [0, 1])
    assert (list(rows.reasons), list(rows.request_id)) == (["", "nobody waited"], ["0", "1"])


def test_lengths_that_do_not_fit_are_not_held():
    assert Drawn.can_hold([1, 2], [3])
    assert not Drawn.can_hold([1, 2**31], [3])
