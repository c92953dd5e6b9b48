"""Tests that enumerate, so that nothing added later escapes: descriptions, units, the schema file, the commands."""

import json
import math
import re
import subprocess
import sys
from typing import Any

import pytest
from conftest import ROOT
from pydantic import BaseModel, ValidationError

from sim.admission import Admission
from sim.autoscaler import Autoscaler
from sim.commands import COMMANDS
from sim.commands.schema import schema_text
from sim.cost import CostModel
from sim.experiment import Experiment
from sim.policy import kinds_of
from sim.router import Router
from sim.scheduler import Scheduler
from sim.section import Section
from sim.speculation import Speculation
from sim.workload.arrivals import ArrivalPolicy
from sim.workload.lengths import LengthPolicy

UNITS = {"_s": "[s]", "_tokens": "[tokens]", "rate": "[requests/s]"}
"""Ending of a field's name -> the unit that its description must end with."""


def _fields(schema):
    for name, section in {"Experiment": schema, **schema["$defs"]}.items():
        for field, described in section.get("properties", {}).items():
            yield f"{name}.{field}", described


FIELDS = dict(_fields(Experiment.model_json_schema()))


@pytest.mark.parametrize("path", sorted(FIELDS))
def test_every_field_says_what_it_is(path):
    if path.endswith(".kind"):
        return
    described = FIELDS[path]
    assert described.get("description") or "$ref" in described, f"{path} has no description"
    types = {described.get("type"), *(choice.get("type") for choice in described.get("anyOf", []))}
    for ending, unit in UNITS.items():
        if types & {"number", "integer"} and path.endswith(ending) and "per_" not in path:
            assert unit in described["description"], f"{path}: say its unit {unit}"


def _sections(base):
    return {child for each in base.__subclasses__() for child in (each, *_sections(each))}


@pytest.mark.parametrize("section", sorted(_sections(Section), key=lambda each: f"{each.__module__}.{each.__name__}"))
def test_no_number_of_a_section_may_be_endless(section):
    for name in (name for name, field in section.model_fields.items() if field.annotation is not Any):
        try:
            section.model_validate({name: math.inf})
        except ValidationError as problem:
            refused = {error["loc"][0] for error in problem.errors() if error["input"] == math.inf}
        else:
            refused = set()
        assert name in refused, f"{section.__name__}.{name} takes infinity"


def test_the_schema_file_is_current():
    assert json.loads((ROOT / "experiment.schema.json").read_text()) == json.loads(schema_text())


def test_reference_page_is_up_to_date():
    page = subprocess.run(
        [sys.executable, "-m", "sim", "schema", "--format", "markdown"], capture_output=True, text=True, check=True
    )
    stale = "python -m sim schema --format markdown > docs/reference.md"
    assert (ROOT / "docs" / "reference.md").read_text() == page.stdout, stale


@pytest.mark.parametrize(
    ("package", "base"),
    [
        ("sim.admission", Admission),
        ("sim.scheduler", Scheduler),
        ("sim.router", Router),
        ("sim.autoscaler", Autoscaler),
        ("sim.cost", CostModel),
        ("sim.speculation", Speculation),
        ("sim.workload.arrivals", ArrivalPolicy),
        ("sim.workload.lengths", LengthPolicy),
    ],
)
def test_every_policy_is_frozen_documented_and_in_the_readme(package, base):
    readme = (ROOT / "README.md").read_text()
    for kind, policy in kinds_of(package, base).items():
        assert policy.model_config["frozen"], kind
        assert policy.__doc__, kind
        assert f"`{kind}`" in readme, f"README.md does not name the kind {kind}"
        assert issubclass(policy, BaseModel)


def _python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, cwd=ROOT)


def test_help_names_every_command():
    shown = _python("-m", "sim", "--help")
    assert set(re.findall(r"^    ([a-z]+)", shown.stdout, re.MULTILINE)) >= set(COMMANDS)


def test_help_and_run_do_not_import_what_they_do_not_need():
    for words in (["--help"], ["run", "--help"]):
        script = f"import sys, runpy; sys.argv = ['sim', *{words}]\ntry: runpy.run_module('sim', run_name='__main__')\nexcept SystemExit: pass\nprint([m for m in ('numpy', 'pydantic', 'scipy', 'pandas', 'plotly', 'streamlit') if m in sys.modules])"  # noqa: E501
        shown = _python("-c", script)
        assert shown.stdout.splitlines()[-1] == "[]"
    script = "import sys, sim.commands.one_run\nprint([m for m in ('scipy', 'pandas', 'plotly', 'streamlit', 'ruamel', 'sim.profiles.huggingface') if m in sys.modules])"  # noqa: E501
    shown = _python("-c", script)
    assert shown.stdout.splitlines()[-1] == "[]"


def test_no_package_exports_a_name_that_importing_a_package_of_it_would_hide():
    for package in [*ROOT.glob("sim/**/__init__.py"), *ROOT.glob("calibration/**/__init__.py")]:
        nested = {inner.parent.name for inner in package.parent.glob("*/__init__.py")}
        imported = {name.split(" as ")[-1] for name in re.findall(r"^from \S+ import (.+)$", package.read_text(), re.M)}
        exported = {name.strip() for names in imported for name in names.split(",")}
        assert not nested & exported, package
