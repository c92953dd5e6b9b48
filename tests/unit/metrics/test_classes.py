"""Figures of classes and tenants, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from handmade import NEVER, requests_of

from sim.metrics.classes import good, groups_of, jain
from sim.request import Status
from sim.slo import SLO

LOST = {"status": Status.REJECTED, "emitted_tokens": 0, "reasons": "HTTP 429"}
ROWS = requests_of(  # arrival, admitted, first token, last token, output tokens; prompts have 100 tokens
    (0.0, 0.0, 1.0, 2.0, 10, {"traffic_class": "chat", "tenant": "a"}),
    (0.0, 0.0, 3.0, 4.0, 20, {"traffic_class": "chat", "tenant": "a"}),
    (0.0, 0.0, 5.0, 10.0, 100, {"traffic_class": "batch", "tenant": "b"}),
    (0.0, NEVER, NEVER, NEVER, 100, {"traffic_class": "batch", "tenant": "b", **LOST}),
    (0.0, 0.0, 1.0, 1.0, 1, {"traffic_class": "other"}),
)
STRICT, LAX = SLO.model_validate({"ttft_p50": 1.5}), SLO.model_validate({"e2e_p90": 20.0})


def test_a_class_has_its_own_figures_and_objectives():
    chat, batch = groups_of(ROWS, STRICT, {"chat": None, "batch": LAX}, 10.0).classes
    assert (chat.requests, chat.completed, chat.rejected, chat.failed) == (2, 2, 0, 0)
    assert (batch.requests, batch.completed, batch.rejected, batch.failed) == (2, 1, 1, 0)
    assert (chat.served_share, batch.served_share) == (1.0, 0.5)
    assert (chat.output_tok_s, batch.output_tok_s) == (3.0, 10.0)
    assert (chat.speed, batch.speed) == (5.0, 10.0)
    assert (chat.goodput, batch.goodput) == (0.1, 0.1)
    assert not chat.objectives["ttft_p50"].met
    assert batch.objectives["e2e_p90"].met
    figures = chat.as_dict()
    assert (figures["mean_ttft_ms"], figures["median_e2el_ms"], figures["slo"]["ttft_p50"]["value_ms"]) == (
        2000.0,
        3000.0,
        2000.0,
    )


def test_tenants_and_how_fairly_they_are_served():
    groups = groups_of(ROWS, None, {}, 10.0)
    assert [tenant.name for tenant in groups.tenants] == ["a", "b"]
    # Served 1 and 1/2: (3/2)^2 / (2 * 5/4); speeds 5 and 10: 15^2 / (2 * 125).
    assert groups.fairness == pytest.approx({"jain_served_share": 0.9, "jain_speed": 0.9})
    assert set(groups.as_dict()) == {"tenants", "fairness"}


def test_each_request_is_good_by_the_objectives_of_its_class():
    assert good(ROWS, STRICT, {"batch": LAX}).tolist() == [True, False, True, False, True]
    assert good(ROWS, None, {"batch": LAX}).tolist() == [True, True, True, False, True]
    assert good(ROWS, None, {"batch": None}) is None


def test_without_classes_and_tenants_there_is_nothing_to_say():
    plain = requests_of((0.0, 0.0, 1.0, 2.0, 10))
    assert groups_of(plain, STRICT, {}, 1.0).as_dict() == {}


def test_a_class_of_nobody():
    (nobody,) = groups_of(ROWS, STRICT, {"nobody": None}, 10.0).classes
    assert nobody.requests == 0
    assert math.isnan(nobody.served_share)


@pytest.mark.parametrize(
    ("shares", "index"), [((1, 1, 1), 1.0), ((1, 0, 0, 0), 0.25), ((2, 1), 0.9), ((3.0, math.nan), 1.0)]
)
def test_jains_index(shares, index):
    assert jain(shares) == pytest.approx(index)


def test_jains_index_of_nothing_is_unknown():
    assert math.isnan(jain([]))
    assert np.isnan(jain([0.0, 0.0]))
