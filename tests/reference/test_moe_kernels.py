"""Skewed experts against the published tables of grouped products, and exchanges against those of DeepEP."""

import pandas as pd
import pytest
from conftest import SHARED

from calibration import all_to_all
from calibration.kernels.routing import first_rank
from sim.cost.accelerator import Accelerator
from sim.cost.moe import Experts
from sim.profiles.library import load_all_to_all, load_calibrated_hardware, load_hardware

pytestmark = pytest.mark.shared
KERNELS = SHARED / "data" / "kernels"
SHAPE = ["dtype", "num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"]
WEIGHTS = {"bfloat16": "bf16", "fp8_block": "fp8_block"}


def _penalties(system, hardware):
    """Return measured and predicted time of skewed over balanced experts, row by row."""
    rows = pd.read_csv(KERNELS / f"moe_{system}.csv.gz")
    rows = rows[(rows.backend_name == "vllm") & rows["dtype"].isin(WEIGHTS) & (rows.topk != 22)]
    rates_of = Accelerator(load_hardware(hardware), load_calibrated_hardware(hardware), kernels="vllm").experts
    by_routing = {name: some.groupby(SHAPE).latency_ms.median() for name, some in rows.groupby("distribution")}
    for alpha in (1.01, 1.2):
        both = pd.concat([by_routing["balanced"], by_routing[f"power_law_{alpha}"]], axis=1, keys=["even", "skewed"])
        for row in both.dropna().reset_index().itertuples():
            inner, ranks, tokens = row.inter_size / row.moe_tp_size, row.moe_ep_size, row.num_tokens
            rates = rates_of(WEIGHTS[row.dtype])
            experts = Experts("", 1, row.num_experts, row.topk, row.hidden_size, inner, 3, ranks, 1, rates)
            grouped = (row.num_experts, row.hidden_size) == (256, 7168)
            even, skewed = (
                experts.demand_of(
                    tokens, *first_rank(row.num_experts, row.topk, tokens, ranks, skew, grouped=grouped)
                ).seconds
                for skew in (None, alpha)
            )
            yield alpha, ranks, tokens, row.skewed / row.even, skewed / even


def _medians(found):
    """Return the median penalties by skew, by EP of 2 to 8, to 64 and to 256, and by tokens above or under 512."""
    rows = pd.DataFrame(found, columns=["alpha", "ranks", "tokens", "measured", "predicted"])
    spread = rows[rows.ranks > 1]
    spread = spread.assign(wide=pd.cut(spread.ranks, [1, 8, 64, 256]), many=spread.tokens > 512)
    return spread.groupby(["alpha", "wide", "many"], observed=True)[["measured", "predicted"]].median()


@pytest.mark.parametrize(
    "systems",
    [
        {"h100_sxm": "H100-SXM-80GB", "h200_sxm": "H200-SXM-141GB"},
        {"b200_sxm": "B200-SXM-180GB", "b300_sxm": "B300-SXM-288GB"},
        {"gb200": "GB200-NVL72", "gb300": "GB300-NVL72"},
    ],
    ids=["hopper", "blackwell", "racks"],
)
def test_the_penalty_of_a_skew_by_expert_parallelism(systems):
    """Published medians: 1.02 to 1.69 above 512 tokens (64 to 256 ranks included), 0.90 to 1.003 under."""
    medians = _medians([penalty for pair in systems.items() for penalty in _penalties(*pair)])
    assert (medians.predicted / medians.measured).tolist() == pytest.approx([1.0] * len(medians), abs=0.15)
    assert (medians.xs(key=True, level="many").measured > 1).all()
    assert (medians.xs(key=False, level="many").measured < 1.01).all()
    some_ranks = medians.drop(index=pd.Interval(64, 256), level="wide")
    assert (some_ranks.xs(key=True, level="many").predicted > 1.1).all()
    assert (some_ranks.xs(key=False, level="many").predicted < 1.01).all()


def _same(shipped, again, most):
    assert shipped.dispatch.link.value == pytest.approx(again["dispatch"]["link"]["value"], rel=0.01)
    assert shipped.fit.sha256 == again["fit"]["sha256"]
    assert shipped.fit.median_error <= most


@pytest.mark.parametrize("library", all_to_all.LIBRARIES)
def test_the_constants_of_libraries_are_those_of_their_tables(library):
    """Held out, by library, mode and topology: medians of at most 12.5 % (GB200 12.2; vLLM on H100 12.7)."""
    most = 0.13 if library == "deepep-vllm" else 0.125
    shipped, fitted = load_all_to_all(library), all_to_all.fit(KERNELS, library)
    for mode in ("low_latency", "high_throughput"):
        for nodes, constants in getattr(shipped, mode).items():
            _same(constants, fitted[mode][nodes], most)
        for name, own in shipped.accelerators.items():
            for nodes, constants in getattr(own, mode).items():
                _same(constants, fitted["accelerators"][name][mode][nodes], most)
