"""The shipped kernel constants against the tables that they were fitted to, and against tables they were not."""

import numpy as np
import pytest
from conftest import SHARED

from calibration.kernels.fitting import errors
from calibration.kernels.systems import tasks
from calibration.kernels.writing import TABLES
from sim.profiles.library import load_calibrated_hardware, load_hardware

pytestmark = pytest.mark.shared
KERNELS = SHARED / "data" / "kernels"


@pytest.mark.parametrize("name", ["H100-SXM-80GB", "L40S", "B200-SXM-180GB"])
def test_constants_are_those_of_the_tables(name):
    calibrated = load_calibrated_hardware(name)
    for task in tasks(KERNELS, load_hardware(name), TABLES):
        constants = getattr(calibrated, task.table).get(task.key)
        if constants is None or not constants.fit.sha256:
            continue
        assert constants.fit.sha256 == task.measured.sha256, task.key
        assert constants.fit.rows == len(task.measured)
        seen = np.median(np.abs(errors(task.problem, constants, task.measured.shapes)))
        assert seen < constants.fit.median_error + 0.01, (task.table, task.key)


def test_a_transfer_within_a_generation_is_nearly_as_good():
    """H200 has the chip of H100 and another memory: what its error factor of 1.5 says."""
    own, other = load_calibrated_hardware("H200-SXM-141GB"), load_calibrated_hardware("H100-SXM-80GB")
    ratios = []
    for task in tasks(KERNELS, load_hardware("H200-SXM-141GB"), TABLES):
        constants = getattr(other, task.table).get(task.key)
        if constants is not None and "@" not in str(task.key):
            found = np.median(np.abs(errors(task.problem, constants, task.measured.shapes)))
            ratios.append(found / getattr(own, task.table)[task.key].fit.median_error)
    assert np.median(ratios) < 1.5
