"""Compare, Plan, Cost and Report: their main actions, and wrong input on every page with a form."""

import pytest
from pages import cards, opened, settled, widget


def test_compare_shows_differences_and_why_and_its_link_restores_them():
    page = opened(page="compare")
    assert page.header[0].value == "2 configurations under the same requests"
    table = page.dataframe[0].value
    assert list(table.columns) == ["", "A", "B", "B against A"]
    assert "TTFT p95 [ms]" in list(table[""])
    assert any("an iteration of B takes" in text.value for text in page.markdown)
    assert page.query_params["side1"] == "deployment.gpu=H200-SXM-141GB\ndeployment.parallelism.tp=2"

    next(each for each in page.number_input if each.key == "deployment.replicas|whole|0|side 0").set_value(4)
    settled(page.run())
    assert page.query_params["side1"].splitlines()[0] == "deployment.gpu=H200-SXM-141GB"
    changed = page.dataframe[0].value
    assert not changed["B"].equals(table["B"])
    again = opened(**page.query_params)
    assert again.dataframe[0].value.equals(changed)


def test_plan_recommends_a_deployment_that_explore_then_shows():
    page = opened(page="plan", search__gpus="[H100-SXM-80GB, L40S]", search__tp="[4]", workload__num_requests="300")
    assert page.header[0].value.startswith("Take 4 x H100-SXM-80GB")
    assert any("**L40S** cannot" in text.value for text in page.markdown)
    assert any(text.value.startswith("- **H100-SXM-80GB**: ") for text in page.markdown)
    next(button for button in page.button if button.label == "Show it in Explore").click()
    settled(page.run())
    assert page.header[0].value == "4 x H100-SXM-80GB keep every objective"


def test_cost_says_whether_to_host_it_oneself_and_what_a_month_costs():
    page = opened(page="cost")
    assert page.header[0].value in ("Use an API", "Self-host")
    before = cards(page)
    widget(page, "number_input", "costs.load_factor").set_value(0.1)
    settled(page.run())
    assert cards(page)["Used of saturation"] != before["Used of saturation"]
    assert page.query_params["costs"] == '{"load_factor": 0.1}'


WRONG = {
    "explore": [
        ({"model": "meta-llama/Llama-9"}, "no profile 'meta-llama/Llama-9'"),
        ({"workload__arrivals__rate": "-1"}, "expected a number above 0, got -1"),
        ({"workload__lengths": "", "workload__arrivals": "{kind: trace, path: /etc/passwd}"}, "was not uploaded here"),
    ],
    "compare": [
        ({"side1": "deployment.gpu=H900"}, "no profile 'H900'"),
        ({"side1": "deployment.replicas=0"}, "expected a number of at least 1, got 0"),
        ({"side1": "model={a: "}, "A part of the link could not be read"),
    ],
    "plan": [
        ({"slo": ""}, "slo"),
        ({"search__gpus": "[H900]"}, "no profile 'H900'"),
        ({"search__min_replicas": "9", "search__max_replicas": "2"}, "max_replicas (2) is below min_replicas (9)"),
    ],
    "cost": [
        ({"costs__load_factor": "2"}, "expected a number of at most 1, got 2"),
        ({"prices__gpu_hour_usd": "-1"}, "at least 0"),
        ({"deployment__gpu": "L4", "deployment__parallelism__tp": "1"}, "Does not fit"),
    ],
    "report": [
        ({"search__kind": "capacity", "search__gpus": "", "search__precisions": ""}, "of kind `cheapest`"),
        ({"search__max_replicas": "0"}, "expected a number of at least 1, got 0"),
        ({"slo": "{ttft_p95: 1 ms}", "search__gpus": "[L4]"}, "Does not fit"),
    ],
}


@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name, wrong in WRONG.items() for place in range(len(wrong))]
)
def test_wrong_input_is_a_message_and_no_figures(name, place):
    query, message = WRONG[name][place]
    page = opened(page=name, **query)
    texts = [error.value for error in page.error]
    assert any(message in text for text in texts), texts
    assert not any("/tmp" in text for text in texts)
    assert not page.metric


def test_report_is_shown_and_downloaded_as_one_file_without_outside_requests():
    page = opened(page="report", search__gpus="[H100-SXM-80GB]", search__tp="[4]", workload__num_requests="200")
    assert page.header[0].value == "The report is ready"
    assert "# Take 4 x H100-SXM-80GB" in page.markdown[-1].value
    assert "/tmp" not in page.markdown[-1].value
    assert [each.proto.label for each in page.get("download_button")] == ["HTML", "Markdown", "JSON"]
