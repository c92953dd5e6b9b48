"""Which answers follow a grammar."""

from collections import Counter
from pathlib import Path

import pytest

from sim.workload import Workload, generate

LENGTHS = {"kind": "fixed", "input_tokens": 1, "output_tokens": 1}


def schemas(**options):
    workload = Workload(arrivals={"kind": "offline"}, lengths=LENGTHS, num_requests=10_000, **options)
    return Counter((request.traffic_class, request.schema) for request in generate(workload, 3, Path()).requests)


def test_no_answer_does_unless_asked_for():
    assert schemas() == {("", ""): 10_000}


def test_a_share_of_them_does_by_one_of_several_schemas():
    found = schemas(structured_output={"share": 0.25, "schemas": 2})
    assert found["", ""] == pytest.approx(7500, rel=0.03)
    assert found["", "schema 0"] == pytest.approx(1250, rel=0.1)
    assert found["", "schema 1"] == pytest.approx(1250, rel=0.1)


def test_a_class_has_schemas_of_its_own():
    classes = [{"name": "chat", "share": 0.5}, {"name": "tools", "share": 0.5, "structured_output": {}}]
    assert set(schemas(classes=classes)) == {("chat", ""), ("tools", "tools schema 0")}
    both = schemas(classes=classes, structured_output={})
    assert set(both) == {("chat", "schema 0"), ("tools", "tools schema 0")}
