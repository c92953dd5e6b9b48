"""Every accelerator: sources, dense peaks, plausible figures; a few against the vendors' own pages."""

import csv
import re

import pytest
from conftest import SHARED

from sim.profiles.folders import names
from sim.profiles.hardware import Hardware
from sim.profiles.library import load, load_calibrated_hardware, load_hardware
from sim.units import GIB

ALL = names("hardware")
RATIOS = {"tf32": (0.25, 1), "fp8": (1, 2), "fp4": (2, 8)}
"""Dense rate by that of 16 bits; with structured sparsity it would be twice as high. fp4: 4, 6 on Blackwell Ultra and 8
on GeForce, whose 16-bit rate is halved when it accumulates in 32 bits."""


@pytest.fixture(params=ALL)
def hardware(request: pytest.FixtureRequest) -> Hardware:
    return load_hardware(request.param)


def test_every_number_has_a_source(hardware: Hardware):
    assert hardware.sources["all"]
    assert set(hardware.sources) <= {"all", *Hardware.model_fields}


def test_memory_is_plausible(hardware: Hardware):
    visible = hardware.visible_memory_bytes / hardware.memory_bytes
    shared_with_a_cpu = hardware.vendor == "Apple" or hardware.name == "DGX-Spark"
    assert (0.74 if shared_with_a_cpu else 0.9) < visible <= 1
    assert hardware.memory_bytes == pytest.approx(round(hardware.memory_bytes / GIB) * GIB)


def test_peaks_are_dense(hardware: Hardware):
    sixteen_bits = hardware.peak_flops["fp16"]
    for dtype, (low, high) in RATIOS.items():
        if dtype in hardware.peak_flops:
            assert 0.97 * low <= hardware.peak_flops[dtype] / sixteen_bits <= 1.03 * high, dtype


def test_ridge_point_is_plausible(hardware: Hardware):
    """FLOPs a byte at which compute and memory take equally long: 12 on a CPU to some 560 on a TPU v6e."""
    ridge = hardware.peak_flops["fp16"] / hardware.memory_bytes_per_s
    assert 10 < ridge < 800


def test_links_are_ordered(hardware: Hardware):
    link = hardware.interconnect
    if link and hardware.pcie_bytes_per_s:
        assert link.bytes_per_s > hardware.pcie_bytes_per_s
        assert link.bytes_per_s < hardware.memory_bytes_per_s
    if hardware.nic_bytes_per_s:
        assert hardware.nic_bytes_per_s <= 800e9 / 8


def test_two_spellings_never_mean_two_accelerators():
    spellings = [
        re.sub(r"[ _-]+", "-", spelling).casefold()
        for hardware in map(load_hardware, ALL)
        for spelling in {hardware.name, *hardware.aliases}
    ]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize(
    ("name", "bytes_per_s", "bf16", "fp8", "fp4", "tdp_w", "link"),
    [  # vendors' data sheets, without sparsity
        ("H100-SXM-80GB", 3.35e12, 989.4e12, 1978.9e12, None, 700, 450e9),
        ("H200", 4.8e12, 989e12, 1979e12, None, 700, 450e9),
        ("A100-80GB-SXM", 2.039e12, 312e12, None, None, 400, 300e9),
        ("L40S", 864e9, 362.05e12, 733e12, None, 350, None),
        ("B200", 8e12, 2250e12, 4500e12, 9000e12, 1000, 900e9),
        ("MI300X", 5.3e12, 1307.4e12, 2614.9e12, None, 750, 448e9),
        ("RTX 4090", 1008e9, 165.2e12, 330.3e12, None, 450, None),
        ("RTX 3090", 936.2e9, 71e12, None, None, 350, 56.25e9),
    ],
)
def test_published_figures(
    name: str,
    bytes_per_s: float,
    bf16: float,
    fp8: float | None,
    fp4: float | None,
    tdp_w: float,
    link: float | None,
):
    hardware = load_hardware(name)
    assert hardware.memory_bytes_per_s == pytest.approx(bytes_per_s)
    assert hardware.peak_flops["bf16"] == bf16
    assert hardware.peak_flops.get("fp8") == fp8
    assert hardware.peak_flops.get("fp4") == fp4
    assert hardware.tdp_w == tdp_w
    assert (hardware.interconnect.bytes_per_s if hardware.interconnect else None) == link


def test_a_bridge_joins_two_and_a_rack_72():
    assert load_hardware("H100-PCIe-80GB").interconnect.joins == 2
    assert load_hardware("GB200").interconnect.joins == 72
    assert load_hardware("H100").interconnect.joins is None


COLUMNS = {
    "memory_gib_nominal": lambda h: h.memory_bytes / GIB,
    "memory_gib_visible": lambda h: h.visible_memory_bytes / GIB,
    "memory_bandwidth_gb_s": lambda h: h.memory_bytes_per_s / 1e9,
    "fp16_bf16_tflops_dense": lambda h: h.peak_flops["fp16"] / 1e12,
    "fp8_tflops_dense": lambda h: h.peak_flops["fp8"] / 1e12,
    "fp4_tflops_dense": lambda h: h.peak_flops["fp4"] / 1e12,
    "int8_tops_dense": lambda h: h.peak_flops["int8"] / 1e12,
    "tf32_tflops_dense": lambda h: h.peak_flops["tf32"] / 1e12,
    "fp32_tflops": lambda h: h.peak_flops["fp32"] / 1e12,
    "sm_or_cu_count": lambda h: h.processors,
    "l2_mb": lambda h: h.l2_bytes / 2**20,
    "tdp_w": lambda h: h.tdp_w,
    "pcie_gb_s_per_direction": lambda h: h.pcie_bytes_per_s / 1e9,
    "nic_gbit_s_per_gpu_typical": lambda h: h.nic_bytes_per_s * 8 / 1e9,
    "gpus_per_node_typical": lambda h: h.gpus_per_node,
    "year": lambda h: h.year,
}


@pytest.mark.shared
def test_every_published_specification_is_carried_over():
    with (SHARED / "data" / "hardware" / "specs.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) > 50
    for row in rows:
        hardware = load_hardware(row["name"])
        for column, value in COLUMNS.items():
            if row[column]:
                assert value(hardware) == pytest.approx(float(row[column])), (row["name"], column)


def test_cards_without_peer_to_peer_access_take_the_all_reduces_through_the_hosts_memory():
    host, pcie = (load("calibrated/links", way).all_reduce for way in ("host", "pcie"))
    assert load_calibrated_hardware("H100-PCIe-80GB").bus_all_reduce == pcie
    assert load_calibrated_hardware("RTX-5090").bus_all_reduce == host
    assert host != pcie
    assert not load_hardware("H100-PCIe-80GB").over_pcie().peer_to_peer, "and yet it has those of pcie"
    own = load_calibrated_hardware("RTX-4090").bus_all_reduce
    assert load_calibrated_hardware("RTX-3090").bus_all_reduce == own
    assert own[2].large_link.value == pytest.approx(host[2].large_link.value / 2, rel=1e-3)
    assert host[2].small_launch_s.value - pcie[2].small_launch_s.value == pytest.approx(18e-6)
