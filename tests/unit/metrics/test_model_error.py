import math

import pytest

from sim.metrics.model_error import ModelError, with_model_error

ERROR = ModelError({"ttft": 1.5, "throughput": 1.1}, "as measured")


def test_an_interval_reaches_from_the_value_over_the_factor_to_the_value_times_it():
    assert with_model_error(ERROR, {"mean_ttft_ms": 300.0}, {})["mean_ttft_ms"] == pytest.approx((200, 450))


def test_sampling_and_model_error_add_in_quadrature():
    sampling = {"p99_ttft_ms": (240.0, 360.0)}  # a factor of 1.2 upwards
    low, high = with_model_error(ERROR, {"p99_ttft_ms": 300.0}, sampling)["p99_ttft_ms"]
    spread = math.exp(math.hypot(math.log(1.5), math.log(1.2)))
    assert (low, high) == pytest.approx((300 / spread, 300 * spread))


def test_rates_have_a_factor_of_their_own_and_what_is_not_known_has_no_interval():
    values = {"output_throughput": 1000.0, "mean_itl_ms": 10.0, "std_ttft_ms": 5.0, "mean_ttft_ms": math.nan}
    assert with_model_error(ERROR, values, {}) == {"output_throughput": pytest.approx((1000 / 1.1, 1100))}
