import pytest
from pydantic import ValidationError

from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import EngineCalibration, EngineConstants
from sim.profiles.library import load_engine, load_hardware

FIT = Fit(source="test")


def entry(since, before=None, gpus=(), overlapped=None, **values):
    constants = {name: Constant(value=value, bounds=(0, 100)) for name, value in values.items()}
    return EngineConstants(
        since=since, before=before, gpus=gpus, overlapped=overlapped, constants=constants, fit=FIT
    )


def calibration(*entries):
    return EngineCalibration(name="vllm", sources={"all": "test"}, entries=entries)


H100, L40S = load_hardware("H100-SXM-80GB"), load_hardware("L40S")


def test_constants_of_the_accelerator_come_before_those_for_all_and_none_hold_outside_of_their_versions():
    own = entry("0.14", "0.23", ("H100-SXM-80GB",), host_per_iteration_s=1e-3)
    others = entry("0.14", "0.23", host_per_iteration_s=2e-3)
    both = calibration(others, own)
    assert both.of("0.15.1", H100) is own
    assert both.of("0.15.1", L40S) is others
    assert both.of("0.14", H100) is own
    assert both.of("0.23", H100) is None
    assert both.of("0.9", H100) is None
    assert both.of("latest", H100) is None


def test_the_latest_version_takes_the_entry_without_an_end():
    newest = entry("0.23", host_per_iteration_s=1e-3)
    assert calibration(newest).of("latest", H100) is newest


def test_constants_replace_those_of_the_version_and_what_was_not_fitted_stays():
    version = load_engine("vllm").at("0.15.1")
    fitted = entry("0.15", overlapped=False, host_per_iteration_s=1e-3, stream_lag_iterations=3, memory_factor=0.9)
    applied = fitted.applied_to(version)
    assert (applied.host.per_iteration_s, applied.host.overlapped) == (1e-3, False)
    assert applied.host.per_sequence_s == version.host.per_sequence_s
    assert applied.request_delay == version.request_delay
    assert applied.stream_lag_iterations == 3
    assert fitted.factors == {"memory_factor": 0.9}


def test_two_entries_for_the_same_versions_and_accelerator_are_an_error():
    with pytest.raises(ValidationError, match=r"two entries hold from 0\.14 on for L40S"):
        calibration(entry("0.14", gpus=("L40S",)), entry("0.14", gpus=("L40S",)))
