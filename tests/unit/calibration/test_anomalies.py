"""Rows whose labels cannot be right are told by their own cells."""

import pytest

from calibration.cases.anomalies import anomaly_of
from calibration.cases.serving import ServingCase

ROW = {"case_id": "sil-1", "engine": "vllm", "gpu": "H100-SXM", "model": "openai/gpt-oss-120b", "load_value": "256"}
TWINS = {"engine": "sglang", "gpu": "B200-SXM", "model": "DeepSeek-R1", "weight_dtype": "fp8", "date": "2026-03-25"}


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({}, "a cap"),
        ({"load_value": "128"}, None),
        ({"gpu": "H200-SXM", "model": "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8", "load_value": "4"}, "hits"),
        ({"engine": "sglang", "date": "2025-11-20"}, "warm-up"),
        ({"engine": "trtllm", "model": "deepseek-ai/DeepSeek-R1"}, "speculative"),
        ({"case_id": "pub-1"}, None),
        (TWINS | {"tp": "8.0"}, "differ"),
        (TWINS | {"tp": "4.0"}, None),
        ({"case_id": "pub1", "engine": "vLLM", "gpu": "Intel PVC GPU"}, "its start"),
    ],
)
def test_anomalies(cells, words):
    found = anomaly_of(ServingCase(ROW | cells))
    assert (found is None) if words is None else (words in found)
