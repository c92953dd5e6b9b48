"""The quick reader of YAML reads a part of what the thorough one does, and reads that alike."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sim.errors import ConfigError
from sim.yamlfile import Document, parse_yaml
from sim.yamlfile.quick import read_quickly
from sim.yamlfile.thorough import read_thoroughly

ROOT = Path(__file__).parents[2]
SHIPPED = [*sorted(ROOT.glob("profiles/**/*.yaml")), *sorted(ROOT.glob("experiments/**/*.yaml"))]

SCALARS = (
    "a b_c on yes null ~ true False 0 -0 +1 010 0o17 0x1F 0b11 1_000 _1 1. .5 .5e3 .5e+3 1e9 1E-3 -1.5e+300 1e999 "
    ". - -. + -_ .inf -.Inf .nan 1.2.3 0.10 2024-01-01 12:30 1:2 = << http://x/y?z=1 4/s a#b a:b :a -a ?a @a `a %a | >"
    r""" & * ! 'x' "y" '1' "" 'it''s' "\n" "\x41" "\u00e9" "\ud83d\ude00" "\/" 'a: b' é "a\ """
)
STRUCTURE = ("\n", "\n  ", "\n    ", "\n- ", "\n  - ", ": ", ":", ", ", ",", "[", "]", "{", "}", " ", "? ", "- ")
MARKS = ("#c", " # c\n", "---", "...", "\n---\n", "&x ", "*x", "!t ", "!!str ", "|\n", ">-\n", "%YAML 1.1\n", "\t")
PIECES = st.sampled_from([*SCALARS.split(), *SCALARS.split(), *STRUCTURE * 4, *MARKS])
TEXTS = st.lists(PIECES | st.text(max_size=2), max_size=16).map(lambda pieces: "k: " + "".join(pieces))


def thorough(text: str) -> Document:
    return read_thoroughly(text, Document({}, "x", ConfigError, {(): ("x", 1)}), numbered=True)


def same(text: str) -> bool:
    """Tell whether *text* is read quickly, and if it is, see that it is read alike."""
    quick = read_quickly(text)
    if quick is None:
        return False
    document = thorough(text)
    assert repr(quick[0]) == repr(document.data)  # tells 1 from 1.0 and True
    assert quick[1] == {path: line for path, (_, line) in document.places.items() if path}
    return True


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_shipped_files_are_read_quickly_and_alike(path: Path):
    text = path.read_text("utf-8")
    assert same(text) or ": &" in text


@pytest.mark.parametrize(
    "text", ["a: 1\n...\n...\n", 'a: [b, "c":1]\n', "a: ['c':d]\n", "a: [x: 1]\n", f"a: {2**1023}\n"]
)
def test_what_the_readers_take_differently_is_not_read_quickly(text: str):
    assert read_quickly(text) is None


@settings(max_examples=1_000, deadline=None)
@given(TEXTS)
@example("a: [1, 2.5, x]\n'b c':\n  - {d: ~}\n  - on\n")
@example("a: 1\na: 2")
@example("a: &x 1\nb: *x")
@example("%YAML 1.1\n---\na: on")
def test_what_is_read_quickly_is_read_alike(text: str):
    same(text)


def test_without_libyaml_all_is_read_thoroughly(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sim.yamlfile.quick.CParser", None)
    assert read_quickly("a: 1") is None
    assert parse_yaml("a: 1", "x").data == {"a": 1}


def test_without_pyyaml_too():
    read = "from sim.yamlfile import parse_yaml; print(parse_yaml('a: 1', 'x').data)"
    command = [sys.executable, "-c", f"import sys; sys.modules['yaml'] = None; {read}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "{'a': 1}\n"
