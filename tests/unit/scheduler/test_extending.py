"""What docs/extending.md says: a scheduler is one file, found by its being there."""

import re
import subprocess
import sys

from conftest import ROOT

EXPERIMENT = """
model: Qwen/Qwen3-8B
deployment: {gpu: H100-SXM-80GB}
engine: {scheduler: {kind: newest}, num_gpu_blocks_override: 1000}
cost_model: {kind: affine, base_s: 1}
workload:
  arrivals: {kind: offline}
  lengths: {kind: fixed, input_tokens: 10, output_tokens: 2}
  num_requests: 3
"""
PROGRAM = """
import sys, pathlib, sim.scheduler
sim.scheduler.__path__.append(sys.argv[1])
from sim.policy import union_of
sim.scheduler.AnyScheduler = union_of("sim.scheduler", sim.scheduler.Scheduler)
from sim.experiment import load_experiment
from sim.simulate import simulate
print(simulate(load_experiment(sys.argv[2])).requests.admitted_s.tolist())
"""


def test_the_scheduler_of_the_guide_runs_from_a_folder_of_its_own(tmp_path):
    guide = (ROOT / "docs" / "extending.md").read_text()
    (source,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "newest.py").write_text(source)
    experiment = tmp_path / "experiment.yaml"
    experiment.write_text(EXPERIMENT)
    command = [sys.executable, "-c", PROGRAM, str(policies), str(experiment)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert shown.stdout == "[4.0, 2.0, 0.0]\n", shown.stderr
