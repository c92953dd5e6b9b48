import math

import numpy as np
import pytest
from handmade import NEVER, context_of, requests_of, two_answers

from sim.metrics.kv_use import kv_use_of
from sim.request import Status


def waste_of(requests, block_size):
    _, strides = two_answers()
    return kv_use_of(context_of(block_size=block_size).pools, requests, strides, 1.0).waste


@pytest.mark.parametrize(
    ("input_tokens", "emitted_tokens", "block_size"), [(17, 3, 16), (1, 2, 16), (50, 500, 16), (9, 40, 1)]
)
def test_waste_is_what_last_blocks_leave_empty_at_each_length_of_an_answer(input_tokens, emitted_tokens, block_size):
    requests = requests_of((0.0, 0.0, 1.0, 2.0, emitted_tokens, {"input_tokens": input_tokens}))
    lengths = np.arange(input_tokens + 1, input_tokens + emitted_tokens)
    room = np.ceil(lengths / block_size) * block_size
    assert waste_of(requests, block_size) == pytest.approx(1 - lengths.sum() / room.sum(), abs=1e-15)


def test_who_never_decoded_or_ran_wastes_nothing():
    unserved = (2.0, NEVER, NEVER, NEVER, 9, {"status": Status.REJECTED, "emitted_tokens": 0, "replica": -1})
    assert math.isnan(waste_of(requests_of((1.0, 1.0, 1.5, 1.5, 1), unserved), 16))
