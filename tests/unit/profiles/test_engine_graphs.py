import pytest

from sim.profiles.library import load_engine


@pytest.mark.parametrize(
    ("version", "largest", "count"),
    [
        ("0.8.5", 512, 67),  # 1, 2, 4 and 8 to 512 by 8: "Capturing CUDA graph shapes: 67/67"
        ("0.14.0", 512, 51),  # 1, 2, 4, 8 to 248 by 8, 256 to 512 by 16
        ("0.14.0", 32, 7),
        ("0.14.0", 2, 2),
        ("0.14.0", 0, 0),
    ],
)
def test_captured_batches_of_vllm(version, largest, count):
    graphs = load_engine("vllm").at(version).graphs
    assert len(graphs.sizes_up_to(largest)) == count
