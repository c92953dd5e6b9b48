"""Shared fixtures: where the published measurements lie, and markers that skip with a reason."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
"""Folder of published measurements beside the repository; a user does not have it."""


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write the golden results anew")
    parser.addoption("--cases", type=int, help="random cases of each law in tests/physics (default: a few)")


@pytest.fixture
def update_golden(request):
    return request.config.getoption("--update-golden")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("shared") and not SHARED.is_dir():
            item.add_marker(pytest.mark.skip(reason="the folder ../shared with published measurements is not here"))
        if item.get_closest_marker("chromium") and not shutil.which("chromium"):
            item.add_marker(pytest.mark.skip(reason="no chromium on the PATH"))
