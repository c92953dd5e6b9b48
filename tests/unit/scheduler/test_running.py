"""The sums over all decodes against the decodes one by one."""

import random

import pytest

from sim.request import Request
from sim.scheduler import Running

BLOCK = 4


def decoding(running, index, input_tokens, output_tokens, emitted=1):
    request = Request(index, input_tokens, output_tokens)
    request.emitted_tokens, request.computed_tokens = emitted, input_tokens + emitted - 1
    running.admit(request)
    running.begin_decoding(request)
    return request


def blocks(tokens):
    return -(-tokens // BLOCK)


@pytest.fixture
def crowd():
    """Ten decodes that began at different times, with two windows."""
    draw, running = random.Random(3), Running(BLOCK, windows=(6, 13))
    requests = []
    for index in range(10):
        requests.append(decoding(running, index, draw.randint(1, 12), 100, draw.randint(1, 5)))
        running.advance(draw.randint(0, 3))
    for request in requests:
        running.settle(request)
    return running, [request.computed_tokens for request in requests]


def test_context_tokens(crowd):
    running, tokens = crowd
    assert running.context_tokens() == sum(count + 1 for count in tokens)


@pytest.mark.parametrize("after", [0, 1, 5])
def test_new_blocks(crowd, after):
    running, tokens = crowd
    for k in range(13):
        taken = sum(blocks(count + after + k) - blocks(count + after) for count in tokens)
        assert running.new_blocks(k, after=after) == taken


@pytest.mark.parametrize("after", [0, 1, 5])
def test_affordable_is_the_most_iterations_that_the_blocks_suffice_for(crowd, after):
    running, _ = crowd
    for free in range(40):
        k = running.affordable(free, after=after)
        assert running.new_blocks(k, after=after) <= free < running.new_blocks(k + 1, after=after)


def test_windows(crowd):
    running, tokens = crowd
    for window in running.windows:
        k = window.next_crossing(running.iteration)
        growing = [count for count in tokens if count + 1 < window.tokens]
        assert window.growing == len(growing)
        assert window.context_tokens(running.iteration) == sum(min(count + 1, window.tokens) for count in tokens)
        if growing:  # the first to reach the window does so in iteration k: from then on it grows no more
            assert k == window.tokens - max(growing)
        else:
            assert k == float("inf")


def test_finishes_come_in_admission_order_and_forget_who_has_left():
    running = Running(BLOCK)
    late, early, left, tied = (decoding(running, index, 4, output) for index, output in enumerate((9, 5, 3, 5)))
    assert running.next_finish() == 2
    running.leave(left)
    assert running.next_finish() == 4
    assert running.advance(4) == [early, tied]
    running.leave(early)
    running.leave(tied)
    assert (running.decoding, running.last, running.next_finish()) == (1, late, 4)


def test_settle_counts_what_was_computed_and_leaves_others_alone():
    running = Running(BLOCK)
    decode = decoding(running, 0, 4, 9)
    prefill = Request(1, 12, 1, computed_tokens=8)
    running.admit(prefill)
    running.advance(3)
    running.settle(decode)
    running.settle(prefill)
    assert (decode.computed_tokens, decode.emitted_tokens) == (7, 4)
    assert (prefill.computed_tokens, prefill.emitted_tokens) == (8, 0)


def test_who_stalls_is_not_computed_and_finishes_later():
    running = Running(BLOCK)
    one, other = decoding(running, 0, 4, 5), decoding(running, 1, 4, 5)
    running.advance(1)
    running.stall(one)
    assert (running.decoding, len(running), running.context_tokens()) == (1, 2, 6)
    running.advance(1)
    running.begin_decoding(one)
    assert running.context_tokens() == 6 + 7
    assert running.advance(2) == [other]
    running.leave(other)
    assert running.advance(1) == [one]


def test_padding_takes_part_without_being_computed():
    running = Running(BLOCK)
    request = decoding(running, 0, 4, 2)
    assert running.advance(1) == [request]
    running.pad(request)
    assert (running.decoding, len(running), list(running.padding)) == (0, 1, [request])
    assert request.computed_tokens == 5  # its last token was never computed
