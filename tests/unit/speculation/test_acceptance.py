"""What is accepted of drafts: the rates that were asked for, whoever asks and when."""

import numpy as np
import pytest
from pydantic import ValidationError

from sim.speculation import Acceptance
from sim.speculation.ngram import Ngram


def test_the_shares_of_drafts_accepted_by_position_are_the_rates():
    rates, drafts = (0.8, 0.5, 0.1), 40_000
    emitted = Acceptance(rates, seed=3).emitted(0, drafts)
    for position, rate in enumerate(rates, start=1):
        share = (emitted > position).mean()
        assert share == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / drafts))
    assert emitted.mean() == pytest.approx(2.4, abs=0.02)


@pytest.mark.parametrize(("rates", "emitted"), [((1.0, 1.0), 3), ((0.0, 0.0), 1), ((1.0, 0.0), 2)])
def test_what_is_certain(rates, emitted):
    assert set(Acceptance(rates).emitted(5, 100).tolist()) == {emitted}


def test_draws_depend_on_the_request_alone():
    acceptance = Acceptance((0.6, 0.3), seed=1)
    assert acceptance.emitted(7, 20).tolist() == acceptance.emitted(7, 50)[:20].tolist()
    assert acceptance.emitted(7, 50).tolist() != acceptance.emitted(8, 50).tolist()


def test_one_chance_for_every_token_after_accepted_ones():
    speculation = Ngram(num_speculative_tokens=3, acceptance=0.5)
    assert speculation.draws(1).rates == (0.5, 0.25, 0.125)


@pytest.mark.parametrize(
    ("rates", "message"),
    [([0.5, 0.6], "cannot rise"), ([0.5], "has 1 positions, num_speculative_tokens 2"), (1.5, "less than or equal")],
)
def test_rates_that_cannot_be(rates, message):
    with pytest.raises(ValidationError, match=message):
        Ngram(num_speculative_tokens=2, acceptance=rates)


def test_what_is_found_in_a_prompt_is_not_always_there():
    """vllm#24344 logs 993 drafts in 5,376 tokens of edits of code, and 821 tokens that had none: 2.96 each."""
    rates = (0.81, 0.74, 0.70, 0.68, 0.66)
    speculation = Ngram(num_speculative_tokens=5, acceptance=rates, found=993 / 1814)
    emitted = speculation.draws(seed=1).emitted(0, 40_000)
    assert emitted.mean() == pytest.approx(5376 / 1814, rel=0.02)
    assert (emitted == 1).mean() == pytest.approx(1 - 993 / 1814 * 0.81, abs=0.01)
