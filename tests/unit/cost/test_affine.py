"""The affine model, to the last bit."""

import math
from fractions import Fraction

import pytest
from pydantic import ValidationError

from sim.batch import Batch, Chunk
from sim.cost import Affine, Pace

LINE = Affine(base_s=2**-7, per_token_s=2**-10, per_context_token_s=2**-13, per_seq_s=2**-9)
MIXED = Batch(
    chunks=(Chunk(100, 28), Chunk(7, 0)), decodes=3, decode_context_tokens=1200, padding=2, sampled=4
)


def test_every_term_of_a_mixed_batch():
    # N = 100 + 7 + 3, C = 128 + 7 + 1200, S = 2 + 3 + 2 padding rows.
    expected = Fraction(1, 2**7) + Fraction(110, 2**10) + Fraction(1335, 2**13) + Fraction(7, 2**9)
    assert LINE.build().pace(MIXED) == Pace(float(expected), 3 * 2**-13, 1)


def test_the_first_decode_after_a_prompt_has_one_token_more_than_it():
    after_prompt_of_512 = Batch(decodes=1, decode_context_tokens=513, sampled=1)
    assert Affine(per_context_token_s=2**-13, base_s=1).build().pace(after_prompt_of_512).first_s == 1 + 513 * 2**-13


def test_a_stride_of_decodes_equals_single_iterations_exactly():
    step, sequences = LINE.build(), 48
    pace = step.pace(Batch(decodes=sequences, decode_context_tokens=48_000, sampled=sequences))
    assert pace.iterations == math.inf
    for iteration in (1, 2, 1000, 123_457):
        later = Batch(decodes=sequences, decode_context_tokens=48_000 + iteration * sequences, sampled=sequences)
        assert step.pace(later).first_s == pace.first_s + iteration * pace.growth_s


def test_breakdown_and_limits_add_up():
    step = LINE.build()
    assert sum(step.breakdown(MIXED).values()) == step.pace(MIXED).first_s
    assert sum(step.limits(MIXED).values()) == pytest.approx(1)
    assert step.admission_delay_s(10**6) == 0


def test_times_may_be_written_with_units():
    assert Affine(base_s="8 ms", per_token_s="20 us").base_s == 0.008


@pytest.mark.parametrize(
    "fields",
    [{}, {"base_s": 0}, {"base_s": -1}, {"base_s": math.nan}, {"base_s": math.inf}, {"per_token_s": "3"}, {"slope": 1}],
)
def test_what_cannot_be_a_step_time_is_refused(fields):
    with pytest.raises(ValidationError):
        Affine(**fields)
