"""The errors in README.md are those of docs/validation.md."""

import re

import pytest
from conftest import ROOT

VALIDATION = (ROOT / "docs" / "validation.md").read_text()
CELL = r"\d+(?:\.\d+)? / \d+(?:\.\d+)?"
ROWS = re.findall(rf"^\|.* \| (\d+) \| ({CELL}) \| ({CELL}) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)


def test_the_table_of_errors_is_found():
    assert len(ROWS) >= 10


@pytest.mark.parametrize("row", ROWS, ids=" ".join)
def test_each_row_of_errors_is_one_of_the_page(row):
    runs, tpot, ttft = row
    assert re.search(rf"\| {runs} \| {tpot}, [+-]\d+ \| {ttft}, [+-]\d+ ", VALIDATION)
