"""Length policies: moments and quantiles against theory, with tolerances of at least four standard errors."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from sim.errors import ProfileError
from sim.profiles.folders import names
from sim.profiles.library import load_workload
from sim.workload.lengths import AnyLengths

HERE = Path()
COUNT = 50_000


def lengths(**fields):
    return TypeAdapter(AnyLengths).validate_python(fields)


def draw(count=COUNT, seed=1, **fields):
    return lengths(**fields).draw(count, seed, HERE)


def test_fixed():
    drawn = draw(count=3, kind="fixed", input_tokens=5, output_tokens=7)
    assert drawn.input_tokens.tolist() == [5, 5, 5]
    assert drawn.output_tokens.tolist() == [7, 7, 7]


def test_uniform_covers_its_bounds():
    drawn = draw(kind="uniform", input_tokens={"low": 10, "high": 12}, output_tokens={"low": 4, "high": 4})
    values, counts = np.unique(drawn.input_tokens, return_counts=True)
    assert values.tolist() == [10, 11, 12]
    np.testing.assert_allclose(counts / COUNT, 1 / 3, atol=0.01)
    assert set(drawn.output_tokens.tolist()) == {4}


def test_exponential_has_its_exact_mean_and_never_zero():
    drawn = draw(kind="exponential", input_tokens=100.0, output_tokens=1.5)
    # Geometric on 1, 2, ...: variance m^2 - m.
    assert drawn.input_tokens.mean() == pytest.approx(100.0, abs=4 * np.sqrt((100**2 - 100) / COUNT))
    assert drawn.output_tokens.mean() == pytest.approx(1.5, abs=4 * np.sqrt((1.5**2 - 1.5) / COUNT))
    assert drawn.output_tokens.min() == 1
    assert np.mean(drawn.output_tokens == 1) == pytest.approx(1 / 1.5, abs=0.01)


def test_lognormal_by_mean_and_by_median():
    drawn = draw(
        kind="lognormal",
        input_tokens={"mean": 1000, "sigma": 0.5},
        output_tokens={"median": 200, "p90": 600},
    )
    relative_spread = np.sqrt(np.exp(0.25) - 1)
    assert drawn.input_tokens.mean() == pytest.approx(1000, rel=4 * relative_spread / np.sqrt(COUNT))
    assert np.median(drawn.output_tokens) == pytest.approx(200, rel=0.03)
    assert np.percentile(drawn.output_tokens, 90) == pytest.approx(600, rel=0.03)


def test_lognormal_is_clipped():
    sides = {"median": 100, "sigma": 2.0, "low": 50, "high": 150}
    drawn = draw(kind="lognormal", input_tokens=sides, output_tokens=sides)
    assert drawn.input_tokens.min() == 50
    assert drawn.input_tokens.max() == 150


def test_quantiles_are_reproduced():
    table = {0: 10, 0.5: 100, 0.9: 1000, 1: 2000}
    drawn = draw(kind="quantiles", input_tokens=table, output_tokens={0: 1, 1: 1})
    assert np.percentile(drawn.input_tokens, [25, 50, 90]) == pytest.approx([55, 100, 1000], rel=0.05)
    # Mean of the piecewise linear inverse: 0.5 * 55 + 0.4 * 550 + 0.1 * 1500.
    assert drawn.input_tokens.mean() == pytest.approx(397.5, rel=0.03)
    assert set(drawn.output_tokens.tolist()) == {1}


@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.421])
def test_rank_correlation_of_the_copula(correlation):
    table = {0: 1, 1: 1_000_000}
    drawn = draw(kind="quantiles", input_tokens=table, output_tokens=table, rank_correlation=correlation)
    ranks = [np.argsort(np.argsort(side)) for side in drawn]
    assert np.corrcoef(*ranks)[0, 1] == pytest.approx(correlation, abs=4 / np.sqrt(COUNT))


@pytest.mark.parametrize("name", names("workloads"))
def test_a_preset_is_its_table(name):
    preset = load_workload(name)
    drawn = draw(kind="preset", name=name)
    for side, table in zip(drawn, (preset.input_tokens, preset.output_tokens), strict=True):
        assert side.min() >= table[0]
        assert side.max() <= table[1]
        assert np.median(side) == pytest.approx(table[0.5], rel=0.06)
        assert np.percentile(side, 90) == pytest.approx(table[0.9], rel=0.06)
    assert preset.sources


@pytest.mark.parametrize(
    ("name", "mean_input", "mean_output"),
    [
        # Means of the traces themselves, not of the tables.
        ("chat", 1155, 211),
        ("code_completion", 2048, 27.9),
        ("long_context_chat", 12035, 343),
        ("rag", 2944, 283),
        ("agentic_coding", 122379, 440),
        ("reasoning", 1270, 1514),
    ],
)
def test_presets_have_the_means_of_their_traces(name, mean_input, mean_output):
    drawn = draw(kind="preset", name=name)
    assert drawn.input_tokens.mean() == pytest.approx(mean_input, rel=0.05)
    assert drawn.output_tokens.mean() == pytest.approx(mean_output, rel=0.05)


def test_an_unknown_preset_names_the_closest():
    with pytest.raises(ProfileError, match="did you mean 'chat'"):
        draw(kind="preset", name="chatt")


def test_prompts_do_not_depend_on_how_answers_are_drawn():
    table = {0: 1, 1: 1000}
    one = draw(kind="quantiles", input_tokens=table, output_tokens={0: 1, 1: 5})
    other = draw(kind="quantiles", input_tokens=table, output_tokens={0: 7, 1: 7}, rank_correlation=0.3)
    np.testing.assert_array_equal(one.input_tokens, other.input_tokens)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "fixed", "input_tokens": 0, "output_tokens": 1}, "greater than or equal to 1"),
        ({"kind": "exponential", "input_tokens": float("nan"), "output_tokens": 1}, "finite"),
        (
            {"kind": "uniform", "input_tokens": {"low": 5, "high": 4}, "output_tokens": {"low": 1, "high": 1}},
            "below low",
        ),
        ({"kind": "lognormal", "input_tokens": {"mean": 5}, "output_tokens": {"mean": 5, "sigma": 1}}, "sigma or p90"),
        (
            {"kind": "lognormal", "input_tokens": {"sigma": 1}, "output_tokens": {"mean": 5, "sigma": 1}},
            "mean or median",
        ),
        ({"kind": "lognormal", "input_tokens": {"mean": 5, "p90": 9}, "output_tokens": {"mean": 5, "sigma": 1}}, "p90"),
        ({"kind": "quantiles", "input_tokens": {0: 5, 1: 4}, "output_tokens": {0: 1, 1: 1}}, "must rise"),
        ({"kind": "quantiles", "input_tokens": {0.1: 5, 1: 6}, "output_tokens": {0: 1, 1: 1}}, "must begin"),
        ({"kind": "quantiles", "input_tokens": {}, "output_tokens": {0: 1, 1: 1}}, "must begin"),
    ],
)
def test_impossible_lengths_are_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        lengths(**fields)
