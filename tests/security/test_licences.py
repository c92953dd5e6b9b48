"""The page of licences tells of everything that an installation asks for, and nothing forbids its use."""

import re

from security.licences import ROOT, direct, installed, licence_of

FREE = re.compile(r"MIT|BSD|0BSD|Apache|PSF|Python Software|MPL|Mozilla|HPND|Zlib|CC0|ISC")
"""Licences under which a company may use the program as it is."""


def test_every_package_that_is_asked_for_is_listed_with_its_licence():
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| \**([\w-]+?)\** \| (.+) \|$", page, re.MULTILINE))
    for name in direct():
        assert FREE.search(listed[name.replace(".", "-").lower()]), name


def test_every_licence_allows_use():
    for name, package in installed().items():
        assert FREE.search(licence_of(package)), name
