"""The web page, run headless: each page's main action, and what it does with wrong input."""

import time

import pytest
from pages import cards, opened, settled, widget


@pytest.fixture(scope="module")
def explore():
    return opened()


def test_the_first_visit_shows_a_worked_example_with_its_figures(explore):
    assert explore.header[0].value == "8 x H100-SXM-80GB keep every objective"
    shown = cards(explore)
    assert shown["GPUs"] == "8"
    assert float(shown["Tokens/s"].replace(",", "")) > 100
    assert shown["\\$ per Mtok"].startswith("$")
    assert any("Limited by " in text.value and "iteration time" in text.value for text in explore.markdown)
    assert len(explore.get("plotly_chart")) == 5
    assert explore.dataframe[0].value.shape == (4, 7)
    assert explore.query_params["page"] == "explore"


def test_the_first_visit_says_how_many_gpus_are_enough(explore):
    for _ in range(300):
        if any("GPUs are enough" in text.value for text in explore.markdown):
            break
        time.sleep(0.1)
        explore.run()
    found = next(text.value for text in explore.markdown if "GPUs are enough" in text.value)
    assert found.startswith("**4 of these GPUs are enough** to keep every objective with 90% confidence")


def test_a_changed_field_changes_figures_link_and_yaml(explore):
    before = cards(explore)
    widget(explore, "selectbox", "deployment.gpu").set_value("H200-SXM-141GB")
    explore.run()
    assert not explore.exception
    assert "H200-SXM-141GB" in explore.header[0].value
    assert cards(explore)["TPOT p95"] != before["TPOT p95"]
    assert explore.query_params["deployment.gpu"] == "H200-SXM-141GB"
    assert "gpu: H200-SXM-141GB" in explore.text_area[0].value

    again = opened(**explore.query_params)
    assert cards(again) == cards(explore)
    assert again.text_area[0].value == explore.text_area[0].value


def test_another_kind_brings_its_own_fields(explore):
    widget(explore, "selectbox", "workload.arrivals").set_value("closed_loop").run()
    assert not explore.exception
    assert widget(explore, "number_input", "workload.arrivals.concurrency").value == 32
    assert "{kind: closed_loop, concurrency: 32}" in explore.text_area[0].value
    assert explore.header[0].value


def test_another_engine_brings_its_own_version():
    page = opened()
    widget(page, "selectbox", "engine.kind").set_value("sglang")
    settled(page.run())
    assert page.query_params["engine"] == '{"kind": "sglang", "max_model_len": 32768}'
    assert not page.error


def test_wrong_input_is_a_message_beside_its_field():
    page = opened(deployment__replicas="100000")
    assert [error.value for error in page.sidebar.error] == ["400,000 accelerators: at most 32,768 are simulated"]
    assert not page.metric


def test_words_of_a_link_draw_nothing():
    page = opened(model="![x](https://example.org/x.png)")
    texts = [element.value for element in (*page.error, *page.markdown, *page.warning)]
    assert page.error
    assert not any("![x](" in text for text in texts)


def test_a_deployment_that_does_not_fit_says_what_would():
    page = opened(deployment__parallelism__tp="1", deployment__gpu="L4")
    assert "Does not fit" in page.error[0].value
    assert any("Nearest that fits" in text.value for text in page.markdown)


def test_a_broken_link_says_so_and_shows_the_worked_example():
    page = opened(model="{a: ")
    assert "The link could not be read" in page.error[0].value
    assert cards(page)["GPUs"] == "8"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("gpus: H100-SXM-80GB", "experiment.yaml:3: deployment.gpus: unknown key 'gpus' (did you mean 'gpu'?)"),
        ("gpu: /etc/passwd.yaml", "looks like a path: only profiles by name and uploads are read"),
        ("gpu: &a [*a]", "is nested deeper than 50 levels"),
    ],
)
def test_wrong_yaml_is_refused_with_its_line_and_without_folders(written, message):
    page = opened()
    text = page.text_area[0].value.replace("gpu: H100-SXM-80GB", written)
    page.text_area[0].set_value(text)
    next(button for button in page.button if button.label == "Use this YAML").click().run()
    assert not page.exception
    assert message in page.error[-1].value
    assert "/tmp" not in page.error[-1].value
    assert cards(page)["GPUs"] == "8"


def test_moe_shows_what_a_placement_is_worth():
    page = opened(page="moe")
    assert page.header[0].value.startswith("The busiest of 8 ranks does 1.0")
    before = cards(page)
    assert float(before["Gain at best"].rstrip("%")) > 1
    widget(page, "selectbox", "moe.placement").set_value("contiguous").run()
    settled(page)
    assert float(cards(page)["Busiest rank / mean"]) > float(before["Busiest rank / mean"])


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"model": "Qwen/Qwen3-8B"}, "no routed experts"),
        ({"moe__num_redundant_experts": "3"}, "131 experts do not divide by ep 8"),
        ({"deployment__parallelism__ep": "3"}, "ep 3 does not divide tp x dp = 8"),
    ],
)
def test_wrong_input_on_moe_is_a_message(query, message):
    page = opened(page="moe", **query)
    assert any(message in error.value for error in page.error)
    assert not page.metric
