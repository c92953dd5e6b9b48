"""Columns are kept narrow and in pieces, and read as if they were neither."""

import numpy as np
import pytest
from handmade import strides_of

from sim.metrics.columns import Texts, narrow
from sim.metrics.gaps import gaps_of
from sim.metrics.rows import COLUMNS, StrideRows

ROWS = [
    {"start_s": float(at), "first_s": 0.01 * at, "growth_s": 1e-4, "iterations": at, "decodes": 300 * at, "replica": at}
    for at in range(1, 9)
]


def in_pieces(rows, size):
    places = range(0, len(rows.start_s), size)
    columns = {name: [getattr(rows, name)[at : at + size] for at in places] for name in COLUMNS}
    narrowed = {name: list(map(narrow, pieces)) for name, pieces in columns.items()}
    return StrideRows(**narrowed, odd_gaps_s=rows.odd_gaps_s, odd_gap_counts=rows.odd_gap_counts)


@pytest.mark.parametrize("size", [1, 3, 8])
def test_pieces_read_as_a_whole(size):
    whole = strides_of(*ROWS, odd_gaps=[(0.5, 2)])
    pieces = in_pieces(whole, size)
    for name in COLUMNS:
        assert getattr(pieces, name).dtype == getattr(whole, name).dtype
        assert getattr(pieces, name).tolist() == getattr(whole, name).tolist()
    assert pieces.duration_s.tolist() == whole.duration_s.tolist()
    assert pieces.where(whole.replica > 4).decodes.tolist() == whole.where(whole.replica > 4).decodes.tolist()


@pytest.mark.parametrize("size", [1, 3, 8])
def test_metrics_of_pieces_are_those_of_the_whole(size):
    whole = strides_of(*ROWS, odd_gaps=[(0.5, 2)])
    pieces = in_pieces(whole, size)
    some, every = gaps_of(pieces), gaps_of(whole)
    assert some.count == every.count
    assert (some.mean_s, some.std_s) == pytest.approx((every.mean_s, every.std_s), rel=1e-12)
    assert some.up_to.tolist() == every.up_to.tolist()
    assert some.bin_mean_s == pytest.approx(every.bin_mean_s, rel=1e-12)


def test_numbers_take_as_few_bytes_as_they_need():
    assert [narrow(np.array([0, most])).dtype.itemsize for most in (0, 255, 256, 65_536, 2**32)] == [1, 1, 2, 4, 8]
    assert narrow(np.array([0.5])).dtype == np.float64
    assert len(narrow(np.empty(0, dtype=np.int32))) == 0


def test_texts_are_made_when_they_are_read():
    texts = Texts(3, str, {1: "one"})
    assert (list(texts), texts[-1], texts[:2], len(texts)) == (["0", "one", "2"], "2", ["0", "one"], 3)
