"""Masks of structured output beside the GPU, or before it."""

import math

import numpy as np
import pytest

from sim.batch import Batch, Chunk
from sim.cost.host import Host
from sim.cost.masks import Masks
from sim.cost.pace import Pace

BATCH = Batch(decodes=4, sampled=4, masks=3)


@pytest.mark.parametrize(
    ("host_overlapped", "masks_overlapped", "fast_gpu_s", "slow_gpu_s"),
    [  # host 2 s, masks 3 s, GPU 1 or 10 s
        (False, False, 1 + 2 + 3, 10 + 2 + 3),
        (False, True, 2 + max(1, 3), 2 + 10),
        (True, False, max(1, 2) + 3, 10 + 3),
        (True, True, max(1, 2 + 3), 10),
    ],
)
def test_what_is_overlapped_hides_behind_the_gpu(host_overlapped, masks_overlapped, fast_gpu_s, slow_gpu_s):
    host = Host(per_iteration_s=2, overlapped=host_overlapped, masks=Masks(1, masks_overlapped))
    assert host.pace(BATCH, 1, 0).first_s == 1 + host.exposed_s(BATCH, 1) == fast_gpu_s
    assert host.pace(BATCH, 10, 0).first_s == 10 + host.exposed_s(BATCH, 10) == slow_gpu_s
    assert host.durations_s(BATCH, np.array([1.0, 10.0])).tolist() == [fast_gpu_s, slow_gpu_s]
    prompt = Batch(chunks=(Chunk(8, 0),), sampled=1, masks=1)
    assert host.pace(prompt, 10, 1) == Pace(10 + host.exposed_s(prompt, 10), 0, 1)


def test_the_pace_is_flat_until_the_gpu_overtakes_the_masks():
    assert Host(masks=Masks(1, overlapped=True)).pace(BATCH, 1.5, 0.5) == Pace(3, 0, 4)  # 1.5, 2, 2.5, 3
    assert Host(masks=Masks(1, overlapped=False)).pace(BATCH, 1.5, 0.5) == Pace(4.5, 0.5, math.inf)


def test_many_masks_are_made_by_several_threads():
    masks = Masks(0.5, overlapped=True, threads=8, serial_up_to=128)
    assert [masks.seconds(count) for count in (0, 1, 128, 129, 256)] == [0, 0.5, 64, 129 / 16, 16]
