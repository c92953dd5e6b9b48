"""The loads that benchmarks of grouped products gave the rank that they timed, by hand."""

import pandas as pd
import pytest

from calibration.kernels import tables
from calibration.kernels.routing import first_rank, first_ranks
from sim.profiles.library import load_hardware


@pytest.mark.parametrize(
    ("tokens", "ranks", "touched", "rows"),
    [
        (3, 1, 6, 6),  # 0, 1 and 2 (of 0, 1.3, 2.7), and 4 further each
        (3, 2, 3, 3),  # 0 to 3 live on the first rank
        (1, 8, 1, 1),  # 0 and 4
        (6, 1, 8, 12),  # 0 to 5 and 4 to 9, which are 0 and 1 again
        (6, 4, 2, 4),  # 0 and 1, twice each
    ],
)
def test_balanced_routing_steps_through_8_experts(tokens, ranks, touched, rows):
    assert first_rank(8, 2, tokens, ranks) == (touched, pytest.approx(rows * ranks / (2 * tokens)))


@pytest.mark.parametrize(
    ("ranks", "touched", "rows"),
    [
        (1, 8, 8),  # of 0, 32, ..., 224 the first four groups remain: 0, 32, 64, 96, and 1 to 4 as ties
        (8, 5, 5),
        (64, 4, 4),
    ],
)
def test_a_router_with_groups_gives_ties_to_the_first_experts(ranks, touched, rows):
    assert first_rank(256, 8, 1, ranks, grouped=True) == (touched, pytest.approx(rows * ranks / 8))


def test_a_skew_loses_no_choice_and_loads_the_first_rank_most():
    whole, busiest = first_rank(128, 8, 64, 1, 1.2), first_rank(128, 8, 64, 16, 1.2)
    assert whole.crowding == 1
    assert whole.touched < 128
    assert 1 < busiest.crowding < 16
    assert busiest.touched <= 8
    # each of two experts has room for the one token only
    assert first_rank(2, 2, 1, 2, 1.2) == (1, 1)


def test_few_choices_under_a_skew_of_1_are_those_of_one_near_it():
    near, at = (first_rank(128, 8, 4, 16, alpha) for alpha in (1 + 1e-6, 1.0))
    assert at == pytest.approx(near, rel=1e-3)


def test_every_row_has_its_own_first_rank():
    rows = pd.DataFrame(
        [(8, 2, 3, 2, False), (256, 8, 1, 64, True)],
        columns=["num_experts", "topk", "num_tokens", "moe_ep_size", "grouped"],
    )
    touched, crowding = first_ranks(rows, None)
    assert touched.tolist() == [3, 4]
    assert crowding.tolist() == pytest.approx([1, 32])
    assert [len(each) for each in first_ranks(rows[:0], None)] == [0, 0]


def test_rows_of_the_cache_and_of_rare_kernels_are_left_out(tmp_path):
    kinds = [("usual", 1, 128, 1.0)] * 3 + [("rare", 1, 64, 1.0), ("other", 8, 64, 1.0), ("usual", 1, 1, 1e-4)]
    rows = pd.DataFrame(kinds, columns=["kernel_source", "moe_ep_size", "num_tokens", "latency_ms"]).assign(
        dtype="bfloat16", backend_name="vllm", hidden_size=2048, inter_size=768, topk=8, num_experts=128,
        moe_tp_size=1, distribution="balanced",
    )  # fmt: skip
    rows.to_csv(tmp_path / "moe_h100_sxm.csv.gz", index=False)
    table = tables.experts(tmp_path, "h100_sxm", "bfloat16", ("vllm",), load_hardware("H100-SXM-80GB"))
    assert table.shapes[["moe_ep_size", "num_tokens"]].to_numpy().tolist() == [[8, 64], [1, 128]]
    assert table.excluded == 2
