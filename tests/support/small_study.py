"""A sweep that takes a moment: the cost of an iteration is a line, the KV pool is given."""

from sim.experiment import load_experiment
from sim.study.cache import Cache
from sim.study.folder import SweepFolder
from sim.study.sweep import run_sweep
from sim.study.workers import workers

TEXT = """\
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {{gpu: H100-SXM-80GB}}
engine: {{num_gpu_blocks_override: 500}}
cost_model: {{kind: affine, base_s: 0.008, per_token_s: 2.0e-5, per_context_token_s: 2.2e-8}}
workload:
  arrivals: {{kind: poisson, rate: 4}}
  lengths: {{kind: fixed, input_tokens: 100, output_tokens: 50}}
  num_requests: {requests}
sweep: {sweep}
"""
GRID = "{workload.arrivals.rate: [2, 4, 8], workload.lengths.output_tokens: [10, 20]}"


def write(folder, sweep=GRID, requests=60):
    path = folder / "exp.yaml"
    path.write_text(TEXT.format(sweep=sweep, requests=requests), encoding="utf-8")
    return path


def sweep_of(path, out, *, cache=None, count=1, backend="local", overrides=()):
    """Run the sweep of the experiment at *path* into *out*; return its rows and how many were left to run."""
    out.mkdir(exist_ok=True)
    left = []
    rows = run_sweep(
        load_experiment(path, overrides),
        SweepFolder(out),
        workers(backend, count, None),
        Cache(cache),
        lambda row, count: left.append(count) if row is None else None,
    )
    return rows, left[0]
