"""What README.md prints and the errors that it names are those of the program and of docs/validation.md."""

import re

import pytest
from conftest import ROOT

from sim.__main__ import main
from sim.experiment import load_experiment

README = (ROOT / "README.md").read_text()
VALIDATION = (ROOT / "docs" / "validation.md").read_text()
CELL = r"\d+(?:\.\d+)? / \d+(?:\.\d+)?"
EXPERIMENTS = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
ROWS = re.findall(rf"^\|.* \| (\d+) \| ({CELL}) \| ({CELL}) \|$", README, re.MULTILINE)


def lines(text):
    """Return the lines of a printed run, without how long it took."""
    masked = re.sub(r"(Simulated .*? in )[\d.]+ m?s", r"\1...", text)
    return [line for line in map(str.rstrip, masked.splitlines()) if line]


def test_the_first_command_prints_what_the_readme_shows(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(["run", "experiments/70b_h100.yaml", "--quiet"]) == 0
    shown = README.partition("and prints:\n\n```\n")[2].partition("```")[0]
    assert lines(capsys.readouterr().out) == lines(shown)


@pytest.fixture
def shown(tmp_path):
    """Return an experiment of the README by its place there."""

    def load(place):
        (tmp_path / "shown.yaml").write_text(EXPERIMENTS[place])
        return load_experiment(tmp_path / "shown.yaml")

    return load


def test_the_experiment_in_the_readme_is_the_one_that_it_runs(shown):
    file = ROOT / "experiments" / "70b_h100.yaml"
    assert shown(0).model_dump() == load_experiment(file).model_dump()


@pytest.mark.parametrize("place", range(1, len(EXPERIMENTS)))
def test_the_questions_in_the_readme_are_ones_that_can_be_asked(place, shown):
    experiment = shown(place)
    assert (experiment.sweep or experiment.search) is not None


def test_the_table_of_errors_is_found():
    assert len(ROWS) >= 10


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_each_row_of_errors_is_one_of_the_page(row):
    runs, tpot, ttft = row
    assert re.search(rf"\| {runs} \| {tpot}, [+-]\d+ \| {ttft}, [+-]\d+ ", VALIDATION)
