"""Links say what differs from the worked example, and are read as somebody else's words."""

import pytest

from sim.errors import ConfigError
from sim.ui.example import CHAT_70B, example
from sim.ui.link import data_of, query_of
from sim.ui.state import State
from sim.ui.uploads import Uploads

BASE = example(CHAT_70B)


@pytest.fixture
def state():
    return State(CHAT_70B, Uploads())


def test_the_worked_example_has_an_empty_link(state):
    assert state.query == {}


@pytest.mark.parametrize(
    ("changes", "query"),
    [
        ({"deployment.gpu": "H200-SXM-141GB"}, {"deployment.gpu": "H200-SXM-141GB"}),
        ({"deployment.replicas": 3}, {"deployment.replicas": "3"}),
        ({"engine.version": "0.20"}, {"engine.version": '"0.20"'}),
        ({"engine.prefix_caching": True}, {"engine.prefix_caching": "true"}),
        ({"slo.ttft_p95": None}, {"slo.ttft_p95": ""}),
        (
            {"workload.arrivals": {"kind": "closed_loop", "concurrency": 8}},
            {"workload.arrivals": '{"kind": "closed_loop", "concurrency": 8}'},
        ),
    ],
)
def test_a_link_holds_what_differs_and_restores_it(state, changes, query):
    for path, value in changes.items():
        state.set(path, value)
    assert state.query == query
    again = State(CHAT_70B, Uploads())
    again.read_query(query)
    assert again.data == state.data
    assert again.text == state.text


def test_a_whole_other_experiment_goes_through_a_link(state):
    state.read_text(
        "model: Qwen/Qwen3-8B\ndeployment: {gpu: L40S}\n"
        "workload: {arrivals: {kind: offline}, lengths: {kind: preset, name: rag}}"
    )
    assert data_of(query_of(state.data, BASE.data), BASE) == state.data


@pytest.mark.parametrize(
    "query",
    [
        {"deployment.gpu": "x" * 20_000},
        {f"a{number}": "1" for number in range(300)},
        {"a..b": "1"},
        {"model": "{a: &a [*a]}"},
        {"model": "!!python/object:os.system ls"},
        {"model.deeper": "1"},
        {"sweep": "[" * 5000},
    ],
)
def test_a_hostile_link_is_refused_in_words(query):
    with pytest.raises(ConfigError):
        State(CHAT_70B, Uploads()).read_query(query)
