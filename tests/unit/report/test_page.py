"""The report: one page, no request to elsewhere, the answer first."""

import itertools
import json
import re
import subprocess

import pytest
from small_search import experiment_in

from sim.__main__ import main
from sim.report.figures import load_curve
from sim.report.html import html_of
from sim.report.markdown import markdown_of
from sim.report.pages import answer_of, sections_of
from sim.study.cheapest import find_cheapest
from sim.study.dossier import dossier_of
from sim.study.laboratory import Laboratory

SEARCH = "{kind: cheapest, gpus: [H100-SXM-80GB, L40S], tp: [1], precisions: [bf16], max_replicas: 8, replications: 1}"


@pytest.fixture(scope="module")
def dossier(tmp_path_factory):
    experiment = experiment_in(tmp_path_factory.mktemp("report"), SEARCH)
    laboratory = Laboratory()
    return dossier_of(experiment, find_cheapest(experiment, laboratory), laboratory)


@pytest.fixture(scope="module")
def page(dossier):
    return html_of(dossier)


def test_it_is_plain_data(dossier, page):
    assert html_of(json.loads(json.dumps(dossier))) == page


def test_the_load_curve_has_the_planned_peak_and_goes_beyond(dossier):
    loads = [point["load"] for point in dossier["curve"]["points"]]
    assert dossier["curve"]["peak"] in loads
    assert loads == sorted(loads)
    assert loads[-1] > dossier["curve"]["peak"]


def test_the_load_curve_is_drawn_over_the_load_in_the_words_of_the_answer(dossier):
    words = dossier["curve"]["load_words"]
    assert words == dossier["answer"]["load_words"]
    assert load_curve(dossier["curve"], {})["layout"]["xaxis"]["title"]["text"] == f"load [{words}]"


def test_the_throughput_of_a_closed_loop_rises_along_the_load_curve(tmp_path):
    closed = "{kind: closed_loop, concurrency: 20}"
    slo = "{ttft_p90: 2 s, tpot_p90: 100 ms}"
    search = SEARCH.replace("[H100-SXM-80GB, L40S]", "[H100-SXM-80GB]")
    experiment = experiment_in(tmp_path, search, arrivals=closed, slo=slo)
    laboratory = Laboratory()
    curve = dossier_of(experiment, find_cheapest(experiment, laboratory), laboratory)["curve"]
    rates = [point["tok_s"] for point in curve["points"]]
    assert len(rates) > 4, rates
    assert all(after > 0.99 * before for before, after in itertools.pairwise(rates)), rates


def test_the_answer_names_count_cost_and_confidence(dossier):
    answer, best = answer_of(dossier), dossier["answer"]["recommended"]
    assert answer.headline == f"Take {best['gpus']} x {best['gpu']}"
    shown = dict(answer.figures)
    assert "90% sure" in shown
    assert f"${best['usd_per_month']:,.0f}" in shown


def test_each_price_of_a_million_tokens_says_what_it_holds(dossier, page):
    assert "rent alone" in dict(answer_of(dossier).figures)[f"${dossier['answer']['recommended']['usd_per_mtok']:.2f}"]
    assert f"all of this at {dossier['money']['load_factor']:.0%} of the peak load" in page


def test_sections_are_those_that_a_buyer_asks_for(dossier):
    titles = [section.title for section in sections_of(dossier)]
    assert titles[:3] == ["Alternatives", "Behaviour", "Money"]
    assert titles[-1] == "Run it again"
    assert any("not modelled" in title for title in titles)


def test_the_page_asks_nobody_for_anything(page):
    without_scripts = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!data:)[a-z]+:", without_scripts)
    assert "<link" not in without_scripts.replace('<link rel="icon" href="data:,">', "")


def test_the_yaml_in_the_page_runs(dossier, tmp_path):
    path = tmp_path / "again.yaml"
    path.write_text(dossier["yaml"])
    assert main(["run", str(path), "--quiet"]) == 0


def test_text_of_users_cannot_break_the_page(dossier):
    name = "<script>alert(1)</script>"
    hostile = {**dossier, "answer": {**dossier["answer"], "model": name}, "yaml": name}
    page = html_of(hostile)
    assert name not in page
    assert "&lt;script&gt;alert(1)" in page


def test_markdown_says_the_same(dossier):
    text = markdown_of(dossier)
    assert text.startswith(f"# {answer_of(dossier).headline}")
    for section in sections_of(dossier):
        assert f"## {section.title}" in text
    assert re.search(r"^\| accelerator \| GPUs \|", text, re.MULTILINE)


@pytest.mark.chromium
def test_chromium_prints_it_on_four_pages_at_most(page, tmp_path):
    file, pdf = tmp_path / "page.html", tmp_path / "page.pdf"
    file.write_text(page, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--enable-logging=stderr"]
    command = ["chromium", *options, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    assert 1 <= len(re.findall(rb"/Type\s*/Page[^s]", pdf.read_bytes())) <= 4


def test_the_command_writes_what_is_asked_for(tmp_path, capsys):
    experiment_in(tmp_path, SEARCH)
    names = [str(tmp_path / f"out.{form}") for form in ("md", "json")]
    assert main(["report", str(tmp_path / "exp.yaml"), "--no-cache", "--quiet", "-o", names[0], "-o", names[1]]) == 0
    assert capsys.readouterr().out.split() == names
    assert json.loads((tmp_path / "out.json").read_text())["answer"]["kind"] == "cheapest"


@pytest.mark.parametrize(
    ("search", "name", "message"),
    [("{kind: capacity}", "a.html", "kind cheapest"), (SEARCH, "a.docx", r"ends with one of \.html, \.md, \.json")],
)
def test_what_cannot_be_reported(tmp_path, search, name, message, capsys):
    experiment_in(tmp_path, search)
    assert main(["report", str(tmp_path / "exp.yaml"), "--quiet", "-o", str(tmp_path / name)]) == 2
    assert re.search(message, capsys.readouterr().err.replace("`search: {kind: cheapest}`", "kind cheapest"))
