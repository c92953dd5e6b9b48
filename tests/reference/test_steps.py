"""Step times of a real engine: vLLM 0.15.1, Llama-2-70B on four H100, traced by its authors (steps.csv.gz).

The kernel constants know nothing of these steps, nor of this model.
"""

import numpy as np
import pandas as pd
import pytest
from conftest import SHARED
from round_numbers import step_of

from sim.batch import Batch
from sim.profiles.layers import DenseMlp, GroupedAttention, Layers
from sim.profiles.library import load_calibrated_hardware, load_engine, load_hardware
from sim.profiles.model import Model

LLAMA_2_70B = Model(
    name="Llama-2-70b-hf",
    sources={"all": "its config.json"},
    architecture="llama",
    hidden_size=8192,
    vocab_size=32000,
    max_position_embeddings=4096,
    tied_embeddings=False,
    layers=(
        Layers(
            count=80,
            attention=GroupedAttention(heads=64, kv_heads=8, head_dim=128),
            mlp=DenseMlp(intermediate=28672),
        ),
    ),
)


@pytest.mark.shared
def test_exact_decode_steps_without_any_fit_to_them():
    steps = pd.read_csv(SHARED / "data" / "steps" / "steps.csv.gz")
    steps = steps[(steps.exact == 1) & (steps.num_prefill_tokens == 0) & (steps.num_decode_seqs > 0)].dropna(
        subset="step_ms"
    )
    assert len(steps) == 865
    step = step_of(
        LLAMA_2_70B,
        load_hardware("H100-SXM-80GB"),
        load_calibrated_hardware("H100-SXM-80GB"),
        host=load_engine("vllm").at("0.15.1"),
        tp=4,
    )
    predicted_ms = [
        1e3 * step.pace(Batch(decodes=n, decode_context_tokens=kv + n, sampled=n)).first_s
        for n, kv in zip(steps.num_decode_seqs, steps.sum_kv_tokens, strict=True)
    ]
    error = np.array(predicted_ms) / steps.step_ms.to_numpy() - 1
    assert np.abs(error).mean() < 0.035
    assert np.median(np.abs(error)) < 0.03
