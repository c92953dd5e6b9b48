"""Mixes of classes on one stream of arrivals."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from conftest import ROOT

from sim.workload import Workload, generate

CHAT = {"name": "chat", "share": 0.25, "lengths": {"kind": "fixed", "input_tokens": 10, "output_tokens": 5}}
BATCH = {"name": "batch", "share": 0.75, "priority": 3, "tenant": "night"}
LENGTHS = {"kind": "exponential", "input_tokens": 300, "output_tokens": 60}
POISSON = {"kind": "poisson", "rate": 4}


def mix(*classes, arrivals=POISSON, lengths=LENGTHS, seed=1, **workload):
    made = Workload.model_validate({"arrivals": arrivals, "lengths": lengths, "classes": classes, **workload})
    return generate(made, seed, ROOT / "experiments").requests


def test_shares_lengths_priorities_and_tenants():
    requests = mix(CHAT, BATCH, num_requests=4000)
    counts = Counter(request.traffic_class for request in requests)
    assert counts["chat"] / 4000 == pytest.approx(0.25, abs=0.03)
    chat = [request for request in requests if request.traffic_class == "chat"]
    assert {(one.input_tokens, one.output_tokens, one.priority, one.tenant) for one in chat} == {(10, 5, 0, "")}
    batch = [request for request in requests if request.traffic_class == "batch"]
    assert {(one.priority, one.tenant) for one in batch} == {(3, "night")}
    assert np.mean([one.input_tokens for one in batch]) == pytest.approx(300, rel=0.1)


def test_arrivals_and_lengths_of_a_class_are_as_without_the_mix():
    alone, mixed = mix(num_requests=500), mix(CHAT, BATCH, num_requests=500)
    assert [one.arrival_s for one in alone] == [one.arrival_s for one in mixed]
    batch = [one.index for one in mixed if one.traffic_class == "batch"]
    assert [alone[index].input_tokens for index in batch] == [mixed[index].input_tokens for index in batch]


def test_classes_with_the_same_lengths_do_not_resemble_each_other():
    own = [{"name": name, "share": 0.5, "lengths": LENGTHS} for name in "ab"]
    requests = mix(*own, lengths=None, num_requests=2000)
    columns = [[one.input_tokens for one in requests if one.traffic_class == name] for name in "ab"]
    length = min(map(len, columns))
    assert abs(np.corrcoef(columns[0][:length], columns[1][:length])[0, 1]) < 0.1


def test_all_turns_of_a_session_are_of_one_class():
    halves = [{"name": name, "share": 0.5, "tenant": name} for name in "ab"]
    requests = mix(*halves, arrivals={"kind": "sessions", "rate": 2, "turns": 4}, lengths=None, num_requests=400)
    classes = {(one.session_id, one.traffic_class, one.tenant) for one in requests}
    assert len(classes) == len({one.session_id for one in requests})
    assert {name for _, name, _ in classes} == {"a", "b"}


def test_a_trace_names_its_own_classes(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text(
        "arrival_s,input_tokens,output_tokens,class,tenant,priority\n"
        "0,10,1,chat,acme,7\n1,10,1,code,,2\n2,10,1,chat,,0\n"
    )
    arrivals = {"kind": "trace", "path": str(trace)}
    requests = mix({"name": "chat", "priority": 1}, {"name": "code", "tenant": "b"}, arrivals=arrivals, lengths=None)
    assert [(one.traffic_class, one.priority, one.tenant) for one in requests] == [
        ("chat", 1, "acme"),
        ("code", 2, "b"),
        ("chat", 1, ""),
    ]


@pytest.mark.parametrize(
    ("classes", "workload", "problem"),
    [
        ((CHAT,), {}, "sum to 0.25, not to 1"),
        ((CHAT, {"name": "batch"}), {}, "needs a share"),
        (({"name": "a"},), {}, "needs a share"),
        ((CHAT, CHAT | {"share": 0.75}), {}, "two classes are called 'chat'"),
        ((CHAT, BATCH), {"lengths": None}, "lengths is missing"),
        ((CHAT, BATCH), {"lengths": None, "arrivals": {"kind": "sessions", "rate": 1}}, "must be left out"),
        ((CHAT | {"share": 0}, BATCH), {}, "greater than 0"),
        ((CHAT | {"slo": {"ttft": 1}}, BATCH), {}, "is no objective"),
    ],
)
def test_what_makes_no_mix_is_refused(classes, workload, problem):
    with pytest.raises(ValueError, match=problem):
        mix(*classes, **workload)
