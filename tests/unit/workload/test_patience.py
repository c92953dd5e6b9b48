"""Clients that give up."""

import math
from pathlib import Path

import numpy as np
import pytest

from sim.workload import Workload, generate


def patience(**options):
    workload = Workload(
        arrivals={"kind": "offline"},
        lengths={"kind": "fixed", "input_tokens": 1, "output_tokens": 1},
        num_requests=10_000,
        patience={"mean_s": 8} | options,
    )
    return np.array([request.patience_s for request in generate(workload, 3, Path()).requests])


def test_all_clients_wait_equally_long():
    assert set(patience().tolist()) == {8.0}


def test_some_wait_for_ever():
    waits_s = patience(share=0.25)
    assert np.isinf(waits_s).mean() == pytest.approx(0.75, abs=0.02)


def test_patience_may_vary():
    waits_s = patience(distribution="exponential")
    assert waits_s.mean() == pytest.approx(8, rel=0.05)
    assert waits_s.std() == pytest.approx(8, rel=0.05)
    assert not math.isinf(waits_s.max())
