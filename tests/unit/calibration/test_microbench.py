"""Kernel times of one's own accelerator: the file, what is fitted to it, and who is refused."""

import numpy as np
import pytest

from calibration.__main__ import main
from calibration.cases.of_files import kind_of
from calibration.kernels.measured import KernelRow, as_csv, read
from calibration.kernels.own import fit_kernels
from sim.cost.accelerator import Accelerator
from sim.cost.gemm import Gemm
from sim.cost.operation import Work
from sim.errors import SimError, UserError
from sim.profiles.library import load_calibrated_hardware, load_hardware

GPU = "RTX-4090"
CHIP = Accelerator(load_hardware(GPU), load_calibrated_hardware(GPU))


def products(slower=1.3):
    """Return rows of products that take *slower* times what the shipped constants say."""
    for m in (1, 16, 256, 2048):
        for n, k in ((4096, 4096), (14336, 4096), (4096, 14336), (6144, 4096)):
            product = Gemm("", 1, k, n, CHIP.gemm("bf16"))
            seconds = slower * product.demand(Work(m, m, m, 0, 0.0, (), ())).seconds
            yield KernelRow("NVIDIA GeForce RTX 4090", "gemm", "bf16", m=m, n=n, k=k, seconds=seconds, source="made up")


def copies():
    for power in range(12, 30, 2):
        yield KernelRow("RTX-4090", "copy", "bf16", bytes=2**power, seconds=4e-6 + 2**power / 0.8e12, source="made up")


def written(folder, rows):
    path = folder / "kernels.csv"
    path.write_text(as_csv(rows), encoding="utf-8")
    return path


def test_rows_come_back_as_they_were_written(tmp_path):
    rows = list(copies())
    path = written(tmp_path, rows)
    assert kind_of(path) == "kernels"
    assert [row._replace(seconds=0) for row in read(path)] == [row._replace(seconds=0) for row in rows]
    assert [row.seconds for row in read(path)] == pytest.approx([row.seconds for row in rows], rel=1e-4)


@pytest.mark.parametrize(("cell", "words"), [("fast", "not a number"), ("0", "not above 0"), ("inf", "not above 0")])
def test_a_time_that_is_none_is_told_with_its_line(tmp_path, cell, words):
    path = written(tmp_path, [next(copies())._replace(seconds=0.25)])
    path.write_text(path.read_text(encoding="utf-8").replace("0.25", cell), encoding="utf-8")
    with pytest.raises(SimError, match=words) as caught:
        read(path)
    assert "kernels.csv:2" in str(caught.value)


def test_the_fitted_accelerator_is_as_slow_as_was_timed_and_can_be_used_at_once(tmp_path):
    rows = [row._replace(gpu=GPU) for row in (*products(), *copies())]
    found = fit_kernels(written(tmp_path, rows))
    folder = tmp_path / "profiles" / "calibrated" / "hardware"
    folder.mkdir(parents=True)
    (folder / f"{GPU}.yaml").write_text(found.yaml, encoding="utf-8")
    fitted = Accelerator(load_hardware(GPU), load_calibrated_hardware(GPU, tmp_path))
    work = Work(512, 512, 512, 0, 0.0, (), ())
    own, shipped = (Gemm("", 1, 8192, 4096, chip.gemm("bf16")).demand(work).seconds for chip in (fitted, CHIP))
    assert own / shipped == pytest.approx(1.3, rel=0.1)
    moves = fitted.elementwise()
    assert moves.bytes_per_s == pytest.approx(0.8e12, rel=0.01)
    assert moves.launch_s == pytest.approx(4e-6, rel=0.01)
    assert fitted.decode("bf16") == CHIP.decode("bf16")  # not timed
    assert np.all([line.startswith(("gemm bf16: 16 shapes", "copy bf16: 9 shapes")) for line in found.report])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([*products(), *copies()], "rows of one accelerator are needed, not of 2"),
        ([row._replace(gpu="Abacus 9") for row in copies()], "no hardware profile for 'Abacus 9'"),
        (list(copies())[:3], "too few shapes"),
        ([next(copies())._replace(operation="sort")], "operation 'sort' is not one of"),
    ],
)
def test_who_cannot_be_fitted(tmp_path, rows, words):
    with pytest.raises(UserError, match=words):
        fit_kernels(written(tmp_path, rows))


def test_fit_tells_kernel_times_from_serving_runs(tmp_path, capsys):
    path, output = written(tmp_path, copies()), tmp_path / "RTX-4090.yaml"
    assert main(["fit", str(path), "-o", str(output)]) == 0
    assert "copy bf16: 9 shapes" in capsys.readouterr().out
    assert output.read_text(encoding="utf-8").startswith("# Written by `python -m calibration fit`")


def test_without_pytorch_or_a_gpu_the_microbench_says_so_in_one_line(tmp_path, capsys):
    assert main(["microbench", "-o", str(tmp_path / "k.csv"), "--device", "cuda"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "k.csv").exists()


def test_the_microbench_runs_on_a_processor(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    path = tmp_path / "k.csv"
    arguments = ["microbench", "-o", str(path), "--device", "cpu", "--tiny", "--ranks", "2", "--gpu", "Core-i9-13900K"]
    assert main(arguments) == 0
    rows = read(path)
    assert {row.operation for row in rows} >= {"gemm", "decode", "prefill", "copy", "all_reduce"}
    assert fit_kernels(path).hardware == "Core-i9-13900K"
