"""Replay of traces: times, limits, sessions, measured latencies."""

import json
import math

import numpy as np
import pytest

from sim.errors import TraceError
from sim.workload import Workload, generate

ROWS = [(0.0, 10), (1.0, 11), (1.0, 12), (4.0, 13)]


def replay(tmp_path, rows, seed=1, num_requests=None, **options):
    lines = [json.dumps({"output_tokens": 1, **row}) for row in rows]
    (tmp_path / "trace.jsonl").write_text("\n".join(lines))
    arrivals = {"kind": "trace", "path": "trace.jsonl", **options}
    return generate(Workload(arrivals=arrivals, num_requests=num_requests), seed, tmp_path)


def rows(pairs=ROWS):
    return [{"arrival_s": arrival_s, "input_tokens": tokens} for arrival_s, tokens in pairs]


def test_a_trace_is_replayed_as_it_is(tmp_path):
    traffic = replay(tmp_path, rows())
    assert [(request.arrival_s, request.input_tokens) for request in traffic.requests] == ROWS
    assert [request.index for request in traffic.requests] == [0, 1, 2, 3]
    assert traffic.slots_open_s is None
    assert traffic.measured is None
    assert traffic.openers == traffic.requests


def test_limit_speedup_and_requests_in_flight(tmp_path):
    traffic = replay(tmp_path, rows(), num_requests=3, speedup=2.0, max_concurrency=2)
    assert [request.arrival_s for request in traffic.requests] == [0.0, 0.5, 0.5]
    assert traffic.slots_open_s.tolist() == [0.0, 0.0]


def quantised(count=4000, tick_s=3.0):
    times_s = tick_s * np.floor(np.cumsum(np.random.default_rng(1).exponential(0.3, count)) / tick_s)
    return rows([(float(time_s), 1) for time_s in times_s])


def test_rounded_times_are_told(tmp_path):
    (warning,) = replay(tmp_path, quantised()).warnings
    assert "rounded to 3 s" in warning


def test_jitter_spreads_rounded_times_within_their_tick(tmp_path):
    recorded = np.array([row["arrival_s"] for row in quantised()])
    traffic = replay(tmp_path, quantised(), jitter="auto")
    times_s = np.array([request.arrival_s for request in traffic.requests])
    assert traffic.warnings == ()
    np.testing.assert_array_equal(np.sort(3.0 * np.floor(times_s / 3.0)), recorded)
    gaps_s = np.diff(times_s)
    assert np.all(gaps_s >= 0)
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(1.0, abs=0.1)  # Poisson again
    by_hand = replay(tmp_path, quantised(), jitter="3 s")
    assert [request.arrival_s for request in by_hand.requests] == times_s.tolist()


def test_jitter_auto_leaves_exact_times_alone(tmp_path):
    assert [request.arrival_s for request in replay(tmp_path, rows(), jitter="auto").requests] == [0.0, 1.0, 1.0, 4.0]


SESSION = [
    {"arrival_s": 0.0, "input_tokens": 10, "session_id": "a", "turn": 0},
    {"arrival_s": 1.0, "input_tokens": 5, "session_id": "b", "turn": 0},
    {"arrival_s": 2.0, "input_tokens": 20, "session_id": "a", "turn": 1, "think_s": 3.0},
    {"arrival_s": 4.0, "input_tokens": 30, "session_id": "a", "turn": 2, "think_s": 0.5},
    {"arrival_s": 9.0, "input_tokens": 6, "session_id": "b", "turn": 1},
]


def test_turns_with_a_pause_follow_the_turn_before(tmp_path):
    traffic = replay(tmp_path, SESSION)
    assert {before: turn.index for before, turn in traffic.follow_ups.items()} == {0: 2, 2: 3}
    assert [traffic.requests[index].think_s for index in (2, 3)] == [3.0, 0.5]
    # Session b has no pauses: its second turn is sent when it was.
    assert [request.index for request in traffic.openers] == [0, 1, 4]


def test_a_rate_spreads_sessions_and_keeps_their_turns(tmp_path):
    traffic = replay(tmp_path, SESSION, rate=2.0)
    times_s = [request.arrival_s for request in traffic.openers]
    assert times_s == sorted(times_s)
    assert [request.input_tokens for request in traffic.openers] == [10, 5, 6]
    by_tokens = {request.input_tokens: request for request in traffic.requests}
    assert traffic.follow_ups[by_tokens[10].index] is by_tokens[20]
    assert traffic.follow_ups[by_tokens[20].index] is by_tokens[30]
    assert [request.index for request in traffic.requests] == list(range(5))


def test_a_turn_whose_predecessor_is_missing_is_sent_at_its_time(tmp_path):
    traffic = replay(tmp_path, SESSION[2:3])
    assert traffic.follow_ups == {}
    assert traffic.openers[0].arrival_s == 2.0


def test_measured_latencies_are_kept_in_seconds(tmp_path):
    traffic = replay(tmp_path, [{**row, "ttft_ms": 80.0} for row in rows()[:1]] + rows()[1:])
    assert traffic.measured.ttft_s[0] == pytest.approx(0.08)
    assert math.isnan(traffic.measured.ttft_s[1])
    assert np.isnan(traffic.measured.e2e_s).all()


def test_segments_priority_and_class_reach_the_request(tmp_path):
    row = {"segments": [["sys", 4]], "output_segment": "o", "priority": 3, "class": "chat", "request_id": "r9"}
    (request,) = replay(tmp_path, [{**rows()[0], **row}]).requests
    assert request.segments == (("sys", 4),)
    assert (request.output_segment, request.priority, request.traffic_class) == ("o", 3, "chat")
    assert request.request_id == "r9"


def test_a_missing_file_is_a_user_error(tmp_path):
    workload = Workload(arrivals={"kind": "trace", "path": "nowhere.csv"})
    with pytest.raises(TraceError, match=r"nowhere\.csv: cannot be read"):
        generate(workload, 1, tmp_path)


def test_lengths_belong_to_the_trace():
    arrivals = {"kind": "trace", "path": "x"}
    with pytest.raises(ValueError, match="lengths must be left out"):
        Workload(arrivals=arrivals, lengths={"kind": "fixed", "input_tokens": 1, "output_tokens": 1})
    with pytest.raises(ValueError, match="lengths is missing"):
        Workload(arrivals={"kind": "offline"})
    with pytest.raises(ValueError, match="did you mean 'azure'"):
        Workload(arrivals={**arrivals, "format": "azur"})
