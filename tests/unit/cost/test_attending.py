"""The time of attending by the context: lines that follow each other, worked out by hand."""

import math

import numpy as np
import pytest
from round_numbers import CONSTANTS, ROUND

from sim.batch import Batch
from sim.cost.accelerator import Accelerator
from sim.cost.attending import Line, attending
from sim.cost.attention import DecodeAttention

RATES = Accelerator(ROUND, CONSTANTS).decode("bf16")


def _attention(repeats=1, window=None, ramp=0.0, ramp_s=0.0, walk_s=0.0):
    """Attention that reads a token in 8 ns, or twice as long as long as it ramps up."""
    rates = RATES._replace(ramp=ramp, ramp_s=ramp_s, walk_s=walk_s)
    return DecodeAttention("", repeats, 0.0, 4000.0, 8, rates, window)


def _batch(decodes, tokens, windows=()):
    return Batch(decodes=decodes, decode_context_tokens=tokens, decode_window_tokens=windows, sampled=decodes)


def test_kernels_with_one_rate_are_one_line():
    found = attending([_attention(repeats=10, walk_s=4e-9)], 0, 4, 1.0, 1.0)
    assert found.token_s == pytest.approx(10 * (8e-9 + 1e-9))
    assert found.whole == (Line(0.0, 0.0, pytest.approx(10 * (8e-9 + 1e-9))),)
    assert found.growth(_batch(4, 1000), ()) == (pytest.approx(40 * 9e-9), math.inf)


def test_each_kernel_reaches_its_full_rate_by_itself():
    # One loses 8 us until 1,000 tokens, twice; the other 32 us until 4,000; a third nothing.
    kernels = [_attention(2, ramp=1.0, ramp_s=8e-6), _attention(1, ramp=1.0, ramp_s=3.2e-5), _attention()]
    found = attending(kernels, 0, 4, 1.0, 1.0)
    assert [line.since for line in found.whole] == pytest.approx([0, 1000, 4000])
    assert [line.fixed_s for line in found.whole] == pytest.approx([0, 1.6e-5, 4.8e-5])
    assert [line.token_s for line in found.whole] == pytest.approx([56e-9, 40e-9, 32e-9])
    tokens = np.array([500, 1000, 2000, 4000, 9000])
    by_hand = [2.8e-5, 5.6e-5, 9.6e-5, 17.6e-5, 33.6e-5]
    assert [found.seconds(each, ()) for each in tokens.tolist()] == pytest.approx(by_hand)
    assert found.more_s(_batch(4, 500), tokens, ()) == pytest.approx(np.array(by_hand) - 2.8e-5)


def test_a_stride_ends_where_the_rate_changes():
    found = attending([_attention(ramp=1.0, ramp_s=8e-6)], 0, 30, 1.0, 1.0)
    assert found.growth(_batch(30, 690), ()) == (pytest.approx(30 * 16e-9), 11)  # the 11th has 990 tokens
    assert found.growth(_batch(30, 1000), ()) == (pytest.approx(30 * 8e-9), math.inf)


def test_windows_have_lines_of_their_own():
    found = attending([_attention(), _attention(3, window=0, ramp=1.0, ramp_s=8e-6)], 1, 4, 1.0, 1.0)
    assert found.token_s is None
    assert found.seconds(5000, (800,)) == pytest.approx(5000 * 8e-9 + 3 * 800 * 16e-9)
    batch = _batch(4, 5000, (801,))
    assert found.growth(batch, (2,)) == (pytest.approx(4 * 8e-9 + 3 * 2 * 16e-9), 100)
    assert found.growth(batch, (0,)) == (pytest.approx(4 * 8e-9), math.inf)


def test_prompts_alone_have_no_context_that_grows():
    found = attending([_attention(window=0)], 1, 0, 1.0, 1.0)
    assert found.growth(Batch(sampled=1), (0,)) == (0.0, math.inf)


def test_a_microbatch_reaches_the_full_rate_with_its_share_of_the_context():
    # Half of the sequences and of the context, three times an iteration.
    found = attending([_attention(ramp=1.0, ramp_s=8e-6, walk_s=4e-9)], 0, 2, 3.0, 0.5)
    assert [line.since for line in found.whole] == pytest.approx([0, 2000])
    assert found.seconds(3000, ()) == pytest.approx(3 * (1500 * 8e-9 + 8e-6 + 1500 * 2e-9))


def test_nobody_attends_to_nothing():
    assert attending([_attention(ramp=1.0, ramp_s=8e-6)], 0, 0, 1.0, 0.0).seconds(0, ()) == 0
