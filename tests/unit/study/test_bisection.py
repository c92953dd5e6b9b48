from hypothesis import given
from hypothesis import strategies as st

from sim.study.bisection import first_true, last_true


@given(st.integers(-5, 5), st.integers(0, 40), st.integers(-8, 50), st.integers(-2, 45), st.sampled_from((1, 8)))
def test_the_border_is_found_from_anywhere_within_the_range(low, size, start, border, stride):
    high, border = low + size, low + border
    asked = []

    def test(place):
        assert low <= place <= high
        asked.append(place)
        return place >= border

    assert first_true(test, start, low, high, stride) == (max(border, low) if border <= high else None)
    assert len(asked) == len(set(asked))
    assert len(asked) <= 14
    below = min(border - 1, high) if border > low else None
    assert last_true(lambda place: place < border, start, low, high, stride) == below
