"""Words for pages that read Markdown."""

import re

from conftest import ROOT

from sim.ui.values import help_of, markdown


def test_dollars_are_no_formula():
    assert markdown("$3 an hour, $5") == "\\$3 an hour, \\$5"
    assert markdown("") is None
    assert help_of("at $3", {}, None) == "at \\$3"


def test_one_place_of_the_pages_writes_dollars_out():
    written = re.compile(r"""replace\(["']\$["']""")
    places = [path.name for path in (ROOT / "sim" / "ui").rglob("*.py") if written.search(path.read_text())]
    assert places == ["text.py"]
