"""One visitor's journey in Debian's Chromium."""

import json
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
from browser import Visitor, server  # noqa: E402  # it needs playwright's windows only

pytestmark = pytest.mark.chromium


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def address():
    with server() as at:
        yield at


def test_a_visitor_changes_the_gpu_shares_the_link_and_runs_the_yaml(browser, address, tmp_path):
    visitor = Visitor(browser, address).open()
    before = visitor.cards()
    visitor.choose("GPU", "H200-SXM-141GB")
    visitor.page.get_by_role("heading", name="8 x H200-SXM-141GB").wait_for(timeout=30_000)
    cards = visitor.cards()
    assert cards != before

    other = Visitor(browser, address).open(visitor.page.url)
    assert other.cards() == cards

    yaml = tmp_path / "experiment.yaml"
    yaml.write_bytes(other.download("YAML").read_bytes())
    shown = json.loads(other.download("JSON").read_text())
    command = [sys.executable, "-m", "sim", "run", str(yaml), "--format", "json", "--quiet"]
    ran = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout)
    assert {key: value for key, value in ran.items() if key != "wall_s"} == {
        key: value for key, value in shown.items() if key != "wall_s"
    }
    assert f"{ran['output_throughput']:,.0f}" in "\n".join(cards)
    for window in (visitor, other):
        assert window.elsewhere == []
        assert window.errors == []


def test_a_phone_shows_the_figures_without_scrolling_sideways(browser, address):
    visitor = Visitor(browser, address, viewport={"width": 390, "height": 844}, color_scheme="dark").open()
    assert visitor.cards()
    wide = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"
    assert not visitor.page.evaluate(wide)
    assert visitor.errors == []
