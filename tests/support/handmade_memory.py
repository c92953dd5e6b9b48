"""A card, small models and engine constants whose memory can be computed by hand."""

from sim.memory import Limits, plan_memory
from sim.profiles.engine_memory import Activations, CudaGraphs, ProfiledMemory
from sim.profiles.hardware import Hardware
from sim.profiles.model import DenseMlp, GroupedAttention, LatentAttention, Layers, LinearAttention, Model, MoeMlp
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Quantization
from sim.units import GIB, MIB

GQA = GroupedAttention(heads=8, kv_heads=4, head_dim=64)
WINDOWED = GQA.model_copy(update={"window": 100})
MLA = LatentAttention(heads=8, q_lora_rank=96, kv_lora_rank=64, nope_head_dim=32, rope_head_dim=16, v_head_dim=32)
STATE = LinearAttention(params=1000, state_bytes=40_000)
DENSE = DenseMlp(intermediate=2048)
MOE = MoeMlp(experts=8, top_k=2, expert_intermediate=256, shared_intermediate=128)
PLAIN = ProfiledMemory(
    activations=Activations(),
    non_torch_bytes=0,
    non_torch_tp_bytes=0,
    non_torch_pp_bytes=0,
    cuda_graphs=CudaGraphs(fixed_bytes=0, per_layer_and_size_bytes=0, subtracted=False),
)
"""An engine that needs nothing beside weights and KV cache."""


def card(gib=1.0, **fields):
    defaults = {"vendor": "NVIDIA", "memory_bytes_per_s": 1e12, "peak_flops": {"bf16": 1e15}, "tdp_w": 700}
    return Hardware(
        **{"name": "card", "sources": {"all": "hand"}, **defaults, **fields},
        memory_bytes=gib * GIB,
        visible_memory_bytes=gib * GIB,
    )


def model(*layers, **fields):
    defaults = {"hidden_size": 512, "vocab_size": 1000, "max_position_embeddings": 4096, "tied_embeddings": False}
    return Model(name="m", sources={"all": "hand"}, architecture="llama", layers=layers, **{**defaults, **fields})


def layer(attention=GQA, mlp=DENSE, count=4):
    return Layers(count=count, attention=attention, mlp=mlp, norm_params=1024)


def limits(**fields):
    defaults = {"max_model_len": 1024, "max_num_seqs": 16, "max_num_batched_tokens": 256}
    return Limits(**{**defaults, "gpu_memory_utilization": 1.0, **fields})


def plan_of(of, *, on=None, memory=PLAIN, quantization=None, knobs=None, **degrees):
    return plan_memory(
        of, on or card(), quantization or Quantization(), Parallelism(**degrees), memory, knobs or limits()
    )


__all__ = ["GIB", "MIB"]
