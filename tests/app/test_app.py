"""The web page, run headless."""

from conftest import ROOT
from streamlit.testing.v1 import AppTest


def _page():
    return AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)


def test_the_first_visit_shows_a_worked_example():
    page = _page().run()
    assert not page.exception
    assert [card.label for card in page.metric] == [
        "Output tokens/s",
        "Output tokens/s per GPU",
        "KV cache at peak",
        "Limited by",
    ]
    assert float(page.metric[0].value.replace(",", "")) > 100
    assert page.table
    texts = [element.value for element in page.markdown]
    assert "TTFT p95 <= 2 s: met" in texts
    assert "TPOT p95 <= 50 ms: met" in texts
    assert any("per million output tokens" in text for text in texts)
    assert any(text.startswith("Limited by ") and "iteration time" in text for text in texts)


def test_a_mistake_is_one_line_beside_the_text():
    page = _page().run()
    page.text_area[0].set_value(page.text_area[0].value.replace("gpu:", "gpus:")).run()
    assert not page.exception
    assert page.error[0].value == "experiment:3: deployment.gpus: unknown key 'gpus' (did you mean 'gpu'?)"
    assert not page.metric
