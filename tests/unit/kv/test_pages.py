"""Block tables with windows and states: what a sequence holds, by hand and against the plan of the memory."""

import numpy as np
import pytest

from sim.experiment import experiment_of
from sim.kv import KvCache, Pages, WindowTables
from sim.request import Request
from sim.simulate import prepare
from sim.simulate.block_tables import pages_of
from sim.yamlfile import parse_yaml

WINDOW = WindowTables(tables=1, tokens=5, block_size=2)


@pytest.mark.parametrize(
    ("computed", "held"),
    # the next token, number `computed` from 0, sees 4 before it: blocks that end before those are free
    [(1, 1), (4, 2), (5, 3), (6, 2), (7, 3), (8, 2), (100, 2), (101, 3)],
)
def test_a_window_keeps_the_blocks_of_what_the_next_token_sees(computed, held):
    assert Pages(2, 0, (WINDOW,)).held(computed) == held


def test_a_chunked_window_begins_with_a_multiple_of_its_length():
    chunked = Pages(2, 0, (WindowTables(1, 6, 2, chunked=True),))
    assert [chunked.held(computed) for computed in (5, 6, 7, 11, 12)] == [3, 0, 1, 3, 0]


def test_tables_add_up():
    pages = Pages(4, 2, (WindowTables(3, 5, 2),), states=1)
    assert pages.held(10) == 2 * 3 + 3 * 2 + 1
    assert pages.held(10, ahead=3) == 2 * 4 + 3 * 4 + 1
    assert pages.held(0) == 0


def test_steps_of_a_sequence_sum_up_to_what_it_holds():
    pages = Pages(4, 1, (WindowTables(2, 7, 2), WindowTables(1, 8, 4, chunked=True)))
    tokens = np.arange(60)
    taken = pages.taken(tokens[:-1], tokens[1:])
    freed = pages.left_behind(tokens[:-1], tokens[1:])
    assert np.cumsum(taken - freed).tolist() == [pages.held(int(n)) for n in tokens[1:]]


@pytest.mark.parametrize("chunk", [1, 3, 16])
def test_nobody_holds_more_than_the_most(chunk):
    pages = Pages(4, 1, (WindowTables(1, 7, 2),), states=1, in_flight_tokens=chunk)
    for tokens in range(1, 70):
        held = [pages.held(past, min(chunk, tokens - past)) for past in range(tokens)]
        assert max(held) <= pages.most(tokens) <= max(held) + 1


def test_a_short_sequence_leaves_room_that_a_long_one_needs():
    """8 full blocks against 2 and a window of 1: one of 30 tokens fits beside one of 4, and no second one does."""
    pages = Pages(4, 1, (WindowTables(1, 4, 4),), in_flight_tokens=4)
    kv = KvCache(12, 4, pages=pages)
    long, short, other = Request(0, 29, 1), Request(1, 4, 1), Request(2, 29, 1)
    assert kv.admit(long, 0, 4)
    for _ in range(6):
        kv.computed(long, 4)
        assert kv.grow(long, 4)
    assert kv.used == 7 + 2
    kv.computed(long, 4)
    assert kv.used == 7 + 1
    assert kv.admit(short, 0, 4)
    kv.computed(short, 4)
    assert kv.free == 12 - 8 - 2
    assert not kv.admit(other, 0, 8)


@pytest.mark.parametrize(
    ("model", "tables"),
    [
        ("openai/gpt-oss-120b", (1, (1,), 0)),
        ("google/gemma-3-27b-it", (1, (6,), 0)),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", (1, (), 3)),
    ],
)
def test_the_most_of_a_sequence_is_what_the_memory_plan_says(model, tables):
    text = f"""
model: {model}
deployment: {{gpu: H200-SXM-141GB, parallelism: {{tp: 2}}}}
engine: {{version: "0.19", max_model_len: 32768}}
workload: {{arrivals: {{kind: offline}}, lengths: {{kind: fixed, input_tokens: 9, output_tokens: 9}}}}
"""
    setup = prepare(experiment_of(parse_yaml(text, "pages.yaml")))
    pages = setup.engine.pages
    assert pages == pages_of(setup.memory, setup.flags.scheduler.longest_chunk)
    assert (pages.full, tuple(each.tables for each in pages.windows), pages.states) == tables
    assert setup.engine.num_blocks == setup.memory.num_blocks
    for tokens in (1, 100, 5000, 32768):
        assert pages.most(tokens) == pytest.approx(setup.memory.blocks_of(tokens), abs=sum(tables[1]))
