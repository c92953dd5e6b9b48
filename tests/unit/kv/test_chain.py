"""Keys of blocks, and the bookkeeping of those that only one request can hit."""

from sim.kv.chain import Chain, ChainBook, Run
from sim.request import Request


def keys(book, *segments, input_tokens=None, output_tokens=1, output_segment=None):
    total = sum(tokens for _, tokens in segments) if input_tokens is None else input_tokens
    request = Request(0, total, output_tokens, segments=segments, output_segment=output_segment)
    return book.chain(request).shared


def test_equal_prefixes_get_equal_keys():
    book = ChainBook(4, generated=False)
    one, other = keys(book, ("a", 6), ("b", 6)), keys(book, ("a", 6), ("c", 6))
    assert len(one) == len(other) == 3
    assert one[0] == other[0]  # inside "a"
    assert not set(one[1:]) & set(other[1:])  # the second block holds 2 tokens of "b" or of "c"


def test_a_longer_piece_of_the_same_name_goes_on_where_the_shorter_ended():
    book = ChainBook(4, generated=False)
    assert keys(book, ("a", 12))[:2] == keys(book, ("a", 8)) == keys(book, ("a", 9))


def test_blocks_with_tokens_of_no_segment_have_no_shared_key():
    assert len(keys(ChainBook(4, generated=False), ("a", 6), input_tokens=20)) == 1
    assert keys(ChainBook(4, generated=False), input_tokens=20) == []


def test_empty_segments_say_nothing():
    book = ChainBook(4, generated=False)
    assert keys(book, ("a", 4), ("x", 0), ("b", 4)) == keys(book, ("a", 4), ("b", 4))


def test_an_answer_continues_the_chain_of_a_named_prompt():
    book = ChainBook(4, generated=True)
    turn = keys(book, ("a", 6), output_tokens=6, output_segment="x")
    assert turn == keys(book, ("a", 6), ("x", 6), ("more", 9))[:3]
    assert len(keys(book, ("a", 6), input_tokens=8, output_tokens=6, output_segment="x")) == 1
    assert len(keys(ChainBook(4, generated=False), ("a", 6), output_tokens=6, output_segment="x")) == 1


def spans(runs):
    return [(run.start, run.stop) for run in runs]


def test_duplicates_of_idle_blocks_are_not_keyed():
    chain = Chain([11, 12], idle=[Run(3, 2), Run(7, 1)])
    chain.key_own(2, 9)
    assert spans(chain.private) == [(2, 3), (5, 7), (8, 9)]


def test_chunks_make_one_run():
    chain = Chain([])
    chain.key_own(0, 2)
    chain.key_own(2, 5)
    assert spans(chain.private) == [(0, 5)]


def test_an_evicted_run_is_a_hole():
    evicted = Run(2, 0)
    chain = Chain([11], idle=[Run(1, 1), evicted, Run(3, 4)])
    assert chain.own_hits() == 1
    chain.key_own(2, 4)
    assert spans(chain.private) == [(2, 3)]
    assert evicted not in chain.idle


def test_reuse_takes_from_the_front_and_leaves_the_rest_idle():
    first, second = Run(2, 2), Run(4, 3)
    chain = Chain([11, 12], idle=[first, second])
    assert chain.own_hits() == 5
    assert chain.reuse_own(4) == [first]
    assert (spans(chain.private), spans(chain.idle)) == ([(2, 6)], [(6, 7)])


def test_retired_runs_come_later_first_and_lie_in_order():
    chain = Chain([], private=[Run(0, 2), Run(4, 2)], idle=[Run(2, 2)])
    assert spans(chain.retire()) == [(4, 6), (0, 2)]
    assert spans(chain.idle) == [(0, 2), (2, 4), (4, 6)]
    assert not chain.private
