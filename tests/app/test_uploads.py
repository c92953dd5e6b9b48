"""Uploads on the page Explore, and stopping what takes long."""

import pytest
from pages import cards, opened, settled

TRACE = b"arrival_s,input_tokens,output_tokens\n" + b"".join(b"%d,500,50\n" % second for second in range(60))
CONFIG = b"""{"architectures": ["LlamaForCausalLM"], "model_type": "llama",
 "hidden_size": 2048, "num_hidden_layers": 16,
 "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
 "max_position_embeddings": 32768, "torch_dtype": "bfloat16", "tie_word_embeddings": true}"""


def _upload(page, kind, name, content):
    place = next(each for each in page.file_uploader if each.key == f"upload {kind}")
    place.set_value([(name, content, "application/octet-stream")])
    return settled(page.run())


def test_an_uploaded_model_and_trace_are_used_at_once():
    page = _upload(opened(), "model", "my model/config.json", CONFIG)
    assert "model: config.json" in page.text_area[0].value
    assert cards(page)["GPUs"] == "8"
    page = _upload(page, "trace", "monday.csv", TRACE)
    assert "arrivals: {kind: trace, path: monday.csv}" in page.text_area[0].value
    assert page.header[0].value == "8 x H100-SXM-80GB keep every objective"
    assert page.query_params["workload.arrivals"] == '{"kind": "trace", "path": "monday.csv"}'

    other = opened(**page.query_params)  # a link does not carry the files
    assert any("was not uploaded here" in error.value for error in other.error)


@pytest.mark.parametrize("content", [b"<!DOCTYPE html><html></html>", bytes(range(256)), TRACE + b"60,-5,x\n"])
def test_a_bad_trace_is_a_message_and_changes_nothing(content):
    page = _upload(opened(), "trace", "bad.csv", content)
    assert page.error[0].value.startswith("bad.csv")
    assert "kind: poisson" in page.text_area[0].value
    assert cards(page)["GPUs"] == "8"


def test_a_search_is_stopped_and_started_again():
    page = opened(page="plan", settle=False, workload__num_requests="10000")  # a quarter of a minute
    next(button for button in page.button if button.label == "Stop").click()
    settled(page.run())
    assert page.warning[0].value == "Stopped before it was done."
    next(button for button in page.button if button.label == "Start again").click()
    page.run()
    assert [button.label for button in page.button].count("Stop") == 1
    next(button for button in page.button if button.label == "Stop").click()
    settled(page.run())
