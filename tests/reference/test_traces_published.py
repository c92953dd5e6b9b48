"""The published traces against figures that were computed from them independently, or published with them."""

import functools

import numpy as np
import pytest
from conftest import SHARED

from sim.report.traces import inspect
from sim.workload import Workload, generate
from sim.workload.traces import read_trace, tick_s

pytestmark = pytest.mark.shared

TRACES = SHARED / "data" / "traces"
REQUESTS = SHARED / "data" / "requests"

summary = functools.cache(lambda name: inspect(TRACES / name))

# requests, rate [1/s], prompt mean/p50/p90/p99, answer mean/p50/p90/p99 (rounded to whole tokens, 27.9 apart), from
# an independent evaluation of the files.
STATISTICS = {
    "azure2023_code.csv": (8819, 2.57, (2048, 1469, 5188, 7436), (27.9, 13, 55, 251)),
    "azure2023_conv.csv": (19366, 5.53, (1155, 1020, 2735, 4142), (211, 129, 424, 601)),
    "mooncake_conversation_trace.jsonl": (12031, 3.40, (12035, 6909, 27367, 85400), (343, 350, 597, 1119)),
    "mooncake_synthetic_trace.jsonl": (3993, 3.91, (15326, 11587, 38611, 66456), (149, 69, 389, 768)),
    "ragpulse_0_trace.jsonl": (7106, 0.0118, (2944, 3140, 3959, 5438), (283, 234, 563, 891)),
}


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics(name):
    requests, rate, prompts, answers = STATISTICS[name]
    found = summary(name)
    assert found.requests == requests
    assert found.rate_per_s == pytest.approx(rate, rel=0.005)
    for lengths, expected in ((found.input_tokens, prompts), (found.output_tokens, answers)):
        assert (lengths.mean, lengths.p50, lengths.p90, lengths.p99) == pytest.approx(expected, abs=0.6)


@pytest.mark.parametrize(
    ("name", "cv"),
    [
        ("azure2023_code.csv", 13.15),
        ("azure2023_conv.csv", 1.094),
        ("mooncake_synthetic_trace.jsonl", 1.01),
        ("ragpulse_0_trace.jsonl", 3.06),
    ],
)
def test_burstiness(name, cv):
    assert summary(name).interarrival_cv == pytest.approx(cv, abs=0.006)


@pytest.mark.parametrize(
    ("name", "share"),
    # Mooncake: token hits of an unlimited cache; its paper says 40 % and 66 % (by request and by block).
    [("mooncake_conversation_trace.jsonl", 0.374), ("mooncake_synthetic_trace.jsonl", 0.651)],
)
def test_unlimited_prefix_cache(name, share):
    assert summary(name).shared_prefix_share == pytest.approx(share, abs=0.001)


def test_claude_code_sessions():
    found = summary("kvcachetester_claudecode_requests.csv.gz")
    assert found.requests + found.failed == 49_334
    assert found.shared_prefix_share == pytest.approx(0.963, abs=0.001)


def test_pieces_from_hashes_agree_with_the_counted_hits():
    # The same 22 sessions, once with block hashes, once in the table that counts seen tokens by session.
    sampled = read_trace(TRACES / "kvcachetester_claudecode_sample_traces.jsonl.gz").rows
    sessions = {row.session_id.partition("/")[0] for row in sampled}
    table = read_trace(TRACES / "kvcachetester_claudecode_requests.csv.gz").rows
    from sim.report.traces import shared_token_share

    counted = shared_token_share(row for row in table if row.session_id.partition("/")[0] in sessions)
    assert shared_token_share(sampled) == pytest.approx(counted, abs=0.002)


def test_mooncake_ticks():
    # Real traces are rounded to 3 s; the synthetic one is not.
    assert summary("mooncake_conversation_trace.jsonl").tick_s == 3.0
    assert summary("mooncake_synthetic_trace.jsonl").tick_s == 0.0


def test_jitter_makes_mooncake_poisson_again():
    def gaps_cv(jitter):
        arrivals = {
            "kind": "trace",
            "path": str(TRACES / "mooncake_conversation_trace.jsonl"),
            "jitter": jitter,
        }
        traffic = generate(Workload(arrivals=arrivals), 1, SHARED)
        gaps_s = np.diff([request.arrival_s for request in traffic.requests])
        return gaps_s.std() / gaps_s.mean()

    assert gaps_cv(0) == pytest.approx(3.03, abs=0.01)
    assert gaps_cv("auto") == pytest.approx(1.0, abs=0.05)


def test_bursts_of_code_completion():
    # Its times are bursts to the microsecond, not ticks.
    rows = read_trace(TRACES / "azure2023_code.csv").rows
    assert tick_s(np.array([row.arrival_s for row in rows])) == 0.0


@pytest.mark.parametrize("path", sorted(REQUESTS.glob("*.csv*")), ids=lambda path: path.name)
def test_request_logs_bring_latencies(path):
    trace = read_trace(path)
    assert trace.format == "request_log"
    for row in trace.rows:
        # E2E = TTFT + (n - 1) TPOT, to the rounding of the file and the retokenised count of answers.
        assert 0 < row.ttft_ms <= row.e2e_ms * 1.001


def test_small_samples_of_other_formats():
    assert summary("burstgpt_v1_schema_sample.csv").requests == 3
    assert summary("burstgpt_v3_schema_sample.csv").sessions == 4
    assert summary("bailian_schema_sample.jsonl").follow_ups == 1
    assert summary("mooncake_arxiv_toolagent_fixture.jsonl").requests == 10
    tracelab = summary("tracelab_replay_example.csv")
    assert (tracelab.requests, tracelab.sessions) == (303, 48)
