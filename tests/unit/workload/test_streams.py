import numpy as np

from sim.workload.streams import stream


def test_a_stream_depends_on_seed_and_purpose_only():
    first = stream(7, "arrivals").random(5)
    stream(7, "lengths").random(100)
    assert np.array_equal(stream(7, "arrivals").random(5), first)
    assert not np.array_equal(stream(8, "arrivals").random(5), first)
    assert not np.array_equal(stream(7, "think").random(5), first)


def test_streams_of_two_purposes_are_uncorrelated():
    arrivals, lengths = (stream(1, purpose).standard_normal(20_000) for purpose in ("arrivals", "lengths"))
    # Standard error of the correlation of n independent pairs: 1 / sqrt(n) = 0.007.
    assert abs(np.corrcoef(arrivals, lengths)[0, 1]) < 4 / np.sqrt(20_000)
