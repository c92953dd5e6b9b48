import itertools
import json
from collections import defaultdict

import numpy as np
from handmade import requests_of, strides_of, two_answers

from sim.report.perfetto import perfetto_trace


def events_of(text, phase):
    return [event for event in json.loads(text)["traceEvents"] if event["ph"] == phase]


def nanoseconds(time_us):
    return round(time_us * 1e3)


def busy(seed=0, replicas=2, count=500):
    """Strides that follow each other without a gap, as a loaded replica makes them."""
    rng = np.random.default_rng(seed)
    rows = []
    for replica in range(replicas):
        start_s = 0.0
        for first_s in rng.uniform(1e-3, 3e-2, count):
            rows.append({"replica": replica, "start_s": start_s, "first_s": first_s, "growth_s": 1e-7})
            rows[-1] |= {"iterations": int(rng.integers(1, 50)), "decodes": 2, "kv_blocks": 5, "waiting": 1}
            start_s += strides_of(rows[-1]).duration_s[0]
    return strides_of(*rows)


def test_strides_never_overlap_on_a_track():
    tracks = defaultdict(list)
    for event in events_of(perfetto_trace(requests_of(), busy()), "X"):
        tracks[event["pid"], event["tid"]].append((nanoseconds(event["ts"]), nanoseconds(event["ts"] + event["dur"])))
    assert len(tracks) == 2
    for spans in tracks.values():
        assert len(spans) == 500
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
        assert all(begin <= end for begin, end in spans)


def test_every_begin_has_its_end_inside_the_request():
    requests, strides = two_answers()
    open_names, spans = defaultdict(list), {}
    for event in json.loads(perfetto_trace(requests, strides))["traceEvents"]:
        key = event.get("cat"), event.get("id")
        if event["ph"] == "b":
            open_names[key].append((event["name"], event["ts"]))
        elif event["ph"] == "e":
            name, begin_us = open_names[key].pop()
            assert name == event["name"]
            spans[event["id"], name] = (begin_us / 1e6, event["ts"] / 1e6)
    assert not any(open_names.values())
    assert spans == {
        ("0", "request 0"): (1.0, 2.25),
        ("0", "queue"): (1.0, 1.0),
        ("0", "prefill"): (1.0, 1.5),
        ("0", "decode"): (1.5, 2.25),
        ("1", "request 1"): (1.25, 2.625),
        ("1", "queue"): (1.25, 1.5),
        ("1", "prefill"): (1.5, 2.0),
        ("1", "decode"): (2.0, 2.625),
    }  # the rejected third never ran


def test_a_request_that_failed_in_its_prefill_ends_where_it_is_known_to():
    requests = requests_of((0.5, 1.0, float("nan"), float("nan"), 4))
    assert [event["name"] for event in events_of(perfetto_trace(requests, strides_of()), "e")] == ["queue", "request 0"]


def test_strides_tell_what_they_computed():
    names = [event["name"] for event in events_of(perfetto_trace(*two_answers()), "X")]
    assert names == ["prefill", "prefill + decode", "decode", "decode"]
    last = events_of(perfetto_trace(*two_answers()), "X")[-1]
    assert (last["ts"], last["dur"], last["args"]["iterations"]) == (2.25e6, 0.375e6, 2)


def test_counters_of_kv_and_queue():
    counters = events_of(perfetto_trace(*two_answers()), "C")
    kv = [event["args"]["in use"] for event in counters if event["name"] == "KV blocks"]
    queue = [event["args"] for event in counters if event["name"] == "requests"]
    assert kv == [7, 11, 11, 4]
    assert queue[1] == {"running": 2, "waiting": 0}


def test_a_long_run_is_cut_and_says_so():
    requests = requests_of(*((float(index), index + 0.5, index + 1.0, index + 2.0, 9) for index in range(50)))
    trace = json.loads(perfetto_trace(requests, busy(), most_requests=20, most_strides=100))
    assert trace["otherData"] == {"requests": "first 20 of 50", "strides": "first 100 of 1,000"}
    phases = [event["ph"] for event in trace["traceEvents"]]
    assert (phases.count("X"), phases.count("b")) == (100, 20 * 4)


def test_replicas_have_names():
    names = [event["args"]["name"] for event in events_of(perfetto_trace(requests_of(), busy()), "M")]
    assert names == ["replica 0", "iterations", "replica 1", "iterations"]
