"""An accelerator with round numbers, and the constants of its kernels, for times that can be worked out by hand."""

from types import SimpleNamespace

from sim.batch import Batch, Chunk
from sim.cost import Roofline
from sim.profiles.calibrated import HardwareCalibration
from sim.profiles.hardware import Hardware
from sim.profiles.layers import DenseMlp, GroupedAttention, Layers
from sim.profiles.model import Model
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Quantization

SOURCES = {"all": "round numbers"}
ROUND = Hardware(
    name="Round",
    vendor="nobody",
    memory_bytes=1e11,
    visible_memory_bytes=1e11,
    memory_bytes_per_s=1e12,
    peak_flops={"bf16": 1e15, "fp8": 2e15},
    processors=100,
    interconnect={"kind": "link", "bytes_per_s": 1e11},
    pcie_bytes_per_s=1e10,
    nic_bytes_per_s=1e9,
    gpus_per_node=8,
    sources=SOURCES,
)


def _constants(**values):
    made = {name: {"value": value, "bounds": (0, 1e9)} for name, value in values.items()}
    return made | {"fit": {"source": "round numbers"}}


# Sharpness 1 adds the times of a roofline up, so that they can be checked one by one.
_GEMM = {"compute": 0.5, "memory": 0.5, "depth": 0.001, "prologue": 0.0, "sharpness": 1.0, "launch_s": 1e-6}
_DECODE = {
    "compute": 0.5,
    "memory": 0.5,
    "tile_s": 1e-6,
    "launch_s": 1e-5,
    "resident_share": 1.0,
    "resident_memory": 1.0,
}
_PREFILL = {
    "compute": 0.5,
    "memory": 0.5,
    "depth": 1.0,
    "tile_s": 1e-6,
    "sharpness": 1.0,
    "launch_s": 1e-5,
    "write": 2.0,
}
_EXPERTS = {"compute": 0.5, "memory": 0.5, "sharpness": 1.0, "launch_s": 2e-5, "row": 1.0, "sort": 0.5}
_LINKS = {
    f"{size}_{name}": value
    for size, link, launch_s in (("small", 0.5, 5e-6), ("medium", 0.5, 1e-5), ("large", 0.8, 2e-5))
    for name, value in (("link", link), ("launch_s", launch_s))
} | {"small_below_bytes": 2.0**19, "medium_below_bytes": 2.0**23}
CONSTANTS = HardwareCalibration(
    name="Round",
    sources=SOURCES,
    gemm={
        "bf16": _constants(**_GEMM, quantise=0.0),
        "fp8": _constants(**_GEMM, quantise=2.0),
        "fp8@other": _constants(**_GEMM | {"launch_s": 3e-6}, quantise=2.0),
    },
    decode={"bf16": _constants(**_DECODE), "fp8": _constants(**_DECODE | {"launch_s": 2e-5})},
    prefill={"bf16": _constants(**_PREFILL)},
    latent_decode={"bf16": _constants(**_DECODE)},
    latent_prefill={"bf16": _constants(**_PREFILL)},
    experts={"bf16": _constants(**_EXPERTS), "int4": _constants(**_EXPERTS | {"launch_s": 4e-5})},
    all_reduce={2: _constants(**_LINKS), 8: _constants(**_LINKS)},
    bus_all_reduce={2: _constants(**_LINKS | {"small_link": 0.2})},
    elementwise=_constants(memory=0.8, launch_s=3e-6),
)


def dense(layers=4, hidden=1024, heads=16, kv_heads=8, head_dim=64, intermediate=4096, vocab=32000, window=None):
    """Make a dense model of equal layers; with a *window*, half of them are limited to it."""
    mlp = DenseMlp(intermediate=intermediate)
    attentions = [GroupedAttention(heads=heads, kv_heads=kv_heads, head_dim=head_dim)]
    if window is not None:
        attentions.append(attentions[0].model_copy(update={"window": window}))
    kinds = (Layers(count=layers // len(attentions), attention=each, mlp=mlp) for each in attentions)
    return model(*kinds, hidden=hidden, vocab=vocab)


def model(*layers, hidden=1024, vocab=32000):
    """Make a model of any layers."""
    return Model(
        name="made",
        architecture="made",
        hidden_size=hidden,
        vocab_size=vocab,
        max_position_embeddings=131072,
        tied_embeddings=False,
        layers=layers,
        sources=SOURCES,
    )


def engine(per_iteration_s=0.0, per_sequence_s=0.0, per_prefill_s=0.0, overlapped=False, fixed_s=0.0, per_token_s=0.0):
    """Make the two parts of an engine version that a cost model reads."""
    return SimpleNamespace(
        host=SimpleNamespace(
            per_iteration_s=per_iteration_s,
            per_sequence_s=per_sequence_s,
            per_prefill_s=per_prefill_s,
            overlapped=overlapped,
        ),
        request_delay=SimpleNamespace(fixed_s=fixed_s, per_prompt_token_s=per_token_s),
        fp8_inputs_fused=False,
        batch_expansion=False,
    )


def step_of(
    of=None,
    hardware=ROUND,
    calibrated=CONSTANTS,
    quantization=None,
    roofline=None,
    host=None,
    padding=None,
    **parallelism,
):
    """Build the step cost of a model on an accelerator."""
    return (roofline or Roofline()).build(
        of or dense(),
        hardware,
        quantization or Quantization(),
        Parallelism(**parallelism),
        host or engine(),
        calibrated,
        padding=padding,
    )


def decoding(sequences, context, windows=()):
    """Make a batch of equal decodes, each with *context* tokens after the iteration."""
    return Batch(
        decodes=sequences,
        decode_context_tokens=sequences * context,
        decode_window_tokens=tuple(sequences * min(context, window) for window in windows),
        sampled=sequences,
    )


def prompts(*chunks):
    """Make a batch of prompt chunks (tokens, past), each the last of its prompt."""
    return Batch(chunks=tuple(Chunk(*chunk) for chunk in chunks), sampled=len(chunks))
