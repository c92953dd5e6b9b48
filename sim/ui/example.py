"""The worked examples that a first visit shows."""

from __future__ import annotations

import functools

from sim.yamlfile import Document, parse_yaml

__all__ = ["CHAT_70B", "MIXTURE", "PLAN_70B", "example"]

CHAT_70B = """\
model: meta-llama/Llama-3.3-70B-Instruct
deployment:
  gpu: H100-SXM-80GB
  replicas: 2
  parallelism: {tp: 4}
  quantization: {weights: fp8, kv_cache: fp8}
engine: {kind: vllm, version: "0.19", max_model_len: 32768}
workload:
  arrivals: {kind: poisson, rate: 4.0}
  lengths: {kind: preset, name: chat}
  num_requests: 1000
slo: {ttft_p95: 2 s, tpot_p95: 50 ms}
prices: {gpu_hour_usd: 2.50}
"""
"""A 70B under chat traffic: few enough requests for an answer at once, and enough to be steady."""

PLAN_70B = """\
model: meta-llama/Llama-3.3-70B-Instruct
deployment:
  gpu: H100-SXM-80GB
  quantization: {weights: fp8, kv_cache: fp8}
engine: {kind: vllm, version: "0.19", max_model_len: 32768}
workload:
  arrivals: {kind: poisson, rate: 4.0}
  lengths: {kind: preset, name: chat}
  num_requests: 1000
slo: {ttft_p95: 2 s, tpot_p95: 50 ms}
search:
  kind: cheapest
  gpus: [H100-SXM-80GB, H200-SXM-141GB, L40S, B200-SXM-180GB]
  precisions: [fp8]
"""
"""Which accelerator, and how many, for the same traffic."""

MIXTURE = """\
model: Qwen/Qwen3-235B-A22B-FP8
deployment:
  gpu: H200-SXM-141GB
  parallelism: {tp: 1, dp: 8, ep: 8}
moe:
  popularity: {kind: lognormal, sigma: 0.65}
  placement: {kind: eplb}
  num_redundant_experts: 16
engine:
  kind: vllm
  version: "0.19"
  all_to_all: {library: deepep, mode: auto}
  max_model_len: 16384
workload:
  arrivals: {kind: poisson, rate: 12.0}
  lengths: {kind: preset, name: chat}
  num_requests: 500
prices: {gpu_hour_usd: 3.50}
"""
"""A mixture of 128 experts on one node, with two redundant ones on each accelerator."""


@functools.cache
def example(text: str) -> Document:
    """Return a worked example as a document."""
    return parse_yaml(text, "example")
