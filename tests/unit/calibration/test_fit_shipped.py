import pytest

from calibration.carry_over import _by_the_others
from calibration.cases.serving import ServingCase
from calibration.fit_shipped import for_all
from calibration.fitting.outcome import profile_yaml
from calibration.fitting.recipes import RECIPES, chosen, drawn
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import EngineConstants
from sim.profiles.library import load_calibrated_engine, load_error_table

ROW = {
    "case_id": "run-1",
    "engine": "vllm",
    "engine_version": "0.15.1",
    "gpu": "H100-80GB-SXM",
    "mode": "agg",
    "model": "m",
    "tp": "1",
    "load_type": "rate",
    "load_value": "4",
    "quality": "ok",
}
RECIPE = next(recipe for recipe in RECIPES if recipe[:3] == ("vllm", "0.14", "0.18"))


def case(**cells):
    return ServingCase(ROW | cells)


def entry(since, before, gpus, **values):
    constants = {name: Constant(value=value, bounds=(0, 9)) for name, value in values.items()}
    return EngineConstants(since=since, before=before, gpus=gpus, constants=constants, fit=Fit(source="test"))


def test_a_recipe_takes_runs_of_its_engine_versions_and_accelerator_with_few_users():
    assert chosen(case(), RECIPE)
    others = (
        {"engine_version": "0.18.0"},
        {"gpu": "L40S"},
        {"engine": "sglang"},
        {"quality": "overload"},
        {"mode": "disagg"},
        {"load_value": ""},
        {"load_type": "concurrency", "load_value": "128"},
        {"load_type": "batch"},
    )
    assert not any(chosen(case(**cells), RECIPE) for cells in others)


def test_a_recipe_may_leave_runs_aside_to_be_judged_by_them():
    between = next(recipe for recipe in RECIPES if recipe.name == "0.23:H100-SXM-80GB")
    assert chosen(case(engine_version="0.23.0", load_value="2"), between)
    assert not chosen(case(engine_version="0.23.0", load_value="6"), between)


def test_a_recipe_may_take_more_users():
    recipe = next(recipe for recipe in RECIPES if recipe[:2] == ("sglang", "0.5") and "H200-SXM-141GB" in recipe.gpus)
    cells = {"case_id": "sil-1", "engine": "sglang", "engine_version": "0.5.9", "gpu": "H200-SXM"}
    cells |= {"load_type": "concurrency", "load_value": "512"}
    assert chosen(case(**cells), recipe)
    assert not chosen(case(**cells | {"load_value": "513"}), recipe)


def test_accelerators_without_timed_kernels_give_nothing_to_others_where_some_have_them():
    kinds = {recipe.gpus[0] for recipe in RECIPES if recipe.engine == "vllm" and recipe.of_other_kernels}
    assert kinds == {"MI250", "MI300X", "Max-1550"}
    others = [each for each in load_calibrated_engine("vllm").entries if not each.gpus]
    assert not any(kind in each.fit.source for kind in kinds for each in others)
    assert (others[0].since, others[0].before) == ("0.2", "0.6")


def test_an_accelerator_is_predicted_with_the_constants_of_the_others():
    sglang = [recipe for recipe in RECIPES if recipe.engine == "sglang"]
    found = _by_the_others(sglang[0], sglang)
    assert sglang[0].gpus[0] not in found.fit.source
    assert sglang[1].gpus[0] in found.fit.source
    assert _by_the_others(sglang[0], sglang[:1]) is None


def test_constants_of_the_others_hold_no_longer_than_those_they_come_from():
    vllm = [recipe for recipe in RECIPES if recipe.engine == "vllm"]
    newest = next(recipe for recipe in vllm if recipe.since == "0.23")
    assert _by_the_others(newest, vllm) is None, "the others' end before 0.23"
    assert _by_the_others(newest._replace(since="0.22", gpus=("L4",)), vllm).before == "0.23"


def test_llama_cpp_is_fitted_to_batches_with_wide_factors():
    batches = [recipe for recipe in RECIPES if recipe.engine == "llama-cpp"]
    llama = {"engine": "llama.cpp", "load_type": "batch", "load_value": "4", "engine_version": ""}
    assert any(chosen(case(**llama), recipe) for recipe in batches)
    assert {recipe.load_types for recipe in batches} == {("batch",)}
    names = [(recipe.engine, recipe.name) for recipe in RECIPES]
    assert len(set(names)) == len(names)


def test_factors_of_an_engine_with_kernels_of_its_own_carry_over():
    entries = [entry("0", None, ("A",), memory_factor=0.6), entry("0", None, ("B",), memory_factor=0.8)]
    (found,) = for_all(entries, factors=True)
    assert found.constants["memory_factor"].value == pytest.approx(0.7)


def test_runs_are_drawn_over_models_and_loads_and_each_question_once():
    cases = [case(case_id=f"run-{model}{load}{copy}", model=model, load_value=load)
             for model in "ab" for load in "123" for copy in "xyz"]  # fmt: skip
    found = drawn(cases, 6)
    assert len({(each.text("model"), each.text("load_value")) for each in found}) == 6
    assert len(drawn(cases, 100)) == 6


def test_other_accelerators_take_the_medians_of_those_that_hold_in_a_range_without_factors():
    entries = [
        entry("0.14", "0.18", ("A",), delay_fixed_s=1.0, memory_factor=1.1),
        entry("0.14", "0.23", ("B",), delay_fixed_s=3.0, memory_factor=0.9),
        entry("0.18", "0.23", ("A",), delay_fixed_s=5.0, memory_factor=1.2),
    ]
    early, late = for_all(entries)
    assert (early.since, early.before, early.gpus) == ("0.14", "0.18", ())
    assert (late.since, late.before) == ("0.18", "0.23")
    assert (early.constants["delay_fixed_s"].value, late.constants["delay_fixed_s"].value) == (2, 4)
    assert "memory_factor" not in early.constants


def test_what_is_written_is_read_again(tmp_path):
    written = entry("0.14", None, ("L40S",), delay_fixed_s=0.5)
    (tmp_path / "mine.yaml").write_text(profile_yaml("mine", [written], "test"))
    assert load_calibrated_engine(str(tmp_path / "mine.yaml")).entries == (written,)


def test_the_profiles_that_come_along_hold_for_the_engines_that_were_measured():
    for engine in ("vllm", "tensorrt-llm", "sglang"):
        assert load_calibrated_engine(engine).entries
    assert load_error_table("serving").of("vllm", "H100-SXM-80GB", "busy").rows > 100
