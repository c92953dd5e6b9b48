from calibration.assumptions import assumed_in_short


def test_each_thing_is_said_once_with_how_many_runs_it_is_of():
    lengths, types = "answers of one length vary by 15 %", "KV cache in fp8"
    said = assumed_in_short([[lengths], [lengths, lengths, types], []])
    assert said == f"{lengths} in 2 of 3 runs; {types} in 1 of 3"


def test_texts_that_differ_in_numbers_are_one_thing():
    counts = [["2560 of 10240 requests are simulated"], ["2560 of 3840 requests are simulated"]]
    assert assumed_in_short(counts, "cases") == "2560 of 3840 to 10240 requests are simulated in 2 of 2 cases"
    versions = [["vllm 0.8 by date"], ["vllm 0.11.1 by date"]]
    assert assumed_in_short(versions) == "vllm 0.8 or 0.11.1 by date in 2 of 2 runs"


def test_nothing_assumed_is_nothing_said():
    assert assumed_in_short([[], []]) == assumed_in_short([]) == assumed_in_short([[]]) == ""
    assert assumed_in_short([["Poisson arrivals", "weights"]]) == "Poisson arrivals; weights"
