import json
import math

from handmade import context_of, strides_of, two_answers

from sim.metrics.summary import summarise
from sim.report.json import to_json


def refuse(constant):
    raise AssertionError(constant)


def test_what_is_no_finite_number_is_null():
    text = to_json({"a": math.nan, "b": [math.inf, 1.5], "c": {"d": -math.inf, "e": True}})
    assert json.loads(text, parse_constant=refuse) == {"a": None, "b": [None, 1.5], "c": {"d": None, "e": True}}


def test_a_result_is_one_object_with_all_digits():
    requests, strides = two_answers()
    values = summarise(requests, strides, context_of(num_gpus=1, kv_blocks=20)).as_dict()
    back = json.loads(to_json(values), parse_constant=refuse)
    assert list(back) == list(values)
    assert back["output_throughput"] == 7 / 1.625


def test_an_empty_result_is_json_too():
    requests, _ = two_answers()
    values = summarise(requests, strides_of(), context_of(num_gpus=1, kv_blocks=0)).as_dict()
    assert json.loads(to_json(values), parse_constant=refuse)["kv_utilization_peak"] is None
