import io

import pytest
from handmade import completed, context_of, strides_of, two_answers

from sim.metrics.power import GpuPower
from sim.metrics.summary import summarise
from sim.profiles.prices import GpuPrice
from sim.report.table import print_table
from sim.slo import SLO


def printed(requests, strides, **changes):
    file = io.StringIO()
    print_table(summarise(requests, strides, context_of(**changes)), ["70b_h100: [a] model", "2 requests"], file)
    return file.getvalue()


def line_of(text, start):
    return next(line for line in text.splitlines() if line.strip().startswith(start))


def words_of(text, start):
    return " ".join(line_of(text, start).split())


def test_latencies_with_their_units_and_the_slo():
    slo = SLO.model_validate({"ttft_p50": "1 s", "ttft_p95": "600 ms", "e2e_p99": "5 s"})
    text = printed(*two_answers(), slo=slo)
    assert words_of(text, "latency") == "latency unit mean 90 % interval p50 p90 p95 p99 SLO within"
    assert words_of(text, "TTFT") == "TTFT ms 625 - 625 725 738 748 p50 <= 1 s: met 100.0%"
    assert words_of(text, "p95 <=") == "p95 <= 600 ms: MISSED 50.0%"
    assert words_of(text, "ITL") == "ITL ms 275 - 250 400 450 490"
    assert words_of(text, "end") == "end to end ms 1,312 - 1,312 1,362 1,369 1,374 p99 <= 5 s: met 100.0%"


def test_what_a_reader_has_to_know():
    money = {"gpu_price": GpuPrice(3.0), "gpu_power": GpuPower(100.0, 700.0)}
    text = printed(*two_answers(), **money, wall_s=0.25, warnings=("defaults [b]",))
    assert text.startswith("70b_h100: [a] model\n2 requests\n")
    assert "2 completed, 0 failed, 1 rejected in 1.62 s; 1.46 running on average" in line_of(text, "Requests")
    assert "1.23 requests/s; 4.31 output tok/s, 2.15 per GPU; 96.6 tok/s with input" in line_of(text, "Throughput")
    assert "6.00 output tok/s; 2 requests at once" in line_of(text, "Peak")
    assert "40.8% used on average, 55.0% at most; prefix hits 16.0%; 1 preemptions" in line_of(text, "KV cache")
    assert "$387 per million output tokens at $3.00 per GPU-hour (as given)" in line_of(text, "Cost")
    assert "325 J per output token; 700 W a GPU on average, 1.40 kW with" in line_of(text, "Energy")
    assert "iteration" in line_of(text, "Limited by")
    assert "Too short: 2 requests" in line_of(text, "State")
    assert "2.62 s in 250 ms, 5 engine iterations" in line_of(text, "Simulated")
    assert "  ! defaults [b]\n" in text
    assert "Goodput" not in text


def test_a_file_gets_plain_text_that_is_not_squeezed(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = printed(*two_answers(), slo=SLO.model_validate({"ttft_p99.9": "100 ms"}))
    assert "\x1b" not in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 110


def test_long_latencies_are_in_seconds_and_steady_ones_have_intervals():
    import numpy as np

    rng = np.random.default_rng(1)
    arrival_s = np.cumsum(rng.exponential(size=3000))
    text = printed(completed(arrival_s, 0.0, rng.exponential(30, 3000), 200.0), strides_of())
    cells = line_of(text, "TTFT").split()
    assert cells[1] == "s"
    assert float(cells[3]) < 30.0 < float(cells[5])
    assert float(cells[2]) == pytest.approx(30.0, rel=0.1)


def test_the_state_is_said_once():
    assert printed(*two_answers()).count("Too short: 2 requests") == 1


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_of_80_columns_has_the_slo_below_the_latencies(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    slo = SLO.model_validate({"ttft_p50": "1 s", "ttft_p95": "600 ms"})
    file = Terminal()
    print_table(summarise(*two_answers(), context_of(slo=slo)), ["70b_h100: [a] model"], file)
    text = file.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert words_of(text, "latency") == "latency unit mean 90 % interval p50 p90 p95 p99"
    assert words_of(text, "SLO") == "SLO TTFT p50 <= 1 s: met, 100.0% within"
    assert "SLO TTFT p95 <= 600 ms: MISSED, 50.0% within" in " ".join(text.split())
