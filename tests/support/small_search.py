"""Searches that take a moment: the cost of an iteration is a line, the KV pool is given."""

from sim.experiment import load_experiment
from sim.study.laboratory import Laboratory
from sim.study.search import answer_of

TEXT = """\
name: small
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {{gpu: H100-SXM-80GB}}
engine: {{num_gpu_blocks_override: 500, scheduler: {{kind: chunked_prefill, max_num_seqs: 16}}}}
cost_model: {{kind: affine, base_s: 0.008, per_token_s: 2.0e-5, per_context_token_s: 2.2e-8}}
workload:
  arrivals: {arrivals}
  lengths: {{kind: exponential, input_tokens: 100, output_tokens: 50}}
  num_requests: {requests}
slo: {slo}
search: {search}
"""
POISSON = "{kind: poisson, rate: 4}"
SLO = "{ttft_p90: 200 ms, tpot_p90: 12 ms}"


def experiment_in(folder, search, *, arrivals=POISSON, slo=SLO, requests=100, overrides=()):
    path = folder / "exp.yaml"
    text = TEXT.format(search=search, arrivals=arrivals, slo=slo, requests=requests)
    path.write_text(text, encoding="utf-8")
    return load_experiment(path, overrides)


def answer(folder, search, **options):
    return answer_of(experiment_in(folder, search, **options), Laboratory())
