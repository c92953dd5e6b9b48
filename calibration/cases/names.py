"""Names in published benchmarks -> profiles: accelerators, models, engines with versions, data types."""

from __future__ import annotations

import functools
import re
from typing import Any

from calibration.cases.columns import is_path
from calibration.cases.not_modelled import IF_KNOWN, NotModelledError
from calibration.cases.releases import current_release
from calibration.cases.serving import ServingCase
from sim.errors import ProfileError, did_you_mean
from sim.profiles.folders import names
from sim.profiles.layers import MoeMlp
from sim.profiles.library import find, load_engine, load_hardware
from sim.profiles.model import Model

__all__ = ["gpu_name", "gpu_of", "is_moe", "kv_dtype", "model_name", "quantization", "version_of"]

_UNSTATED = "H100-80GB(variant unstated; TPOT implies PCIe)"
_GPUS = (
    (re.escape(_UNSTATED), "H100-PCIe-80GB"),
    (r".*\(Nvidia RTX 4090\)|4090 24GB|.*\(Nvidia 4090\)", "RTX-4090"),
    (r"3090 24GB", "RTX-3090"),
    (r"(?:NVIDIA )?GeForce (RTX \d{4})", r"\1"),
    (r"(?:NVIDIA )?RTX 6000 Ada.*", "RTX-6000-Ada"),
    (r"NVIDIA H100 80GB HBM3", "H100-SXM-80GB"),
    (r"Tesla (T4|V100-SXM2-32GB)", r"\1"),
    (r"AMD Strix Halo.*", "Strix-Halo"),
    (r"Apple (M\d) (Ultra|Max).*|(M\d) (Ultra|Max) .*-Core GPU.*", r"Apple-\1\3-\2\4"),
    (r".*GB10.*", "DGX-Spark"),
    (r".*GH200.*144GB.*", "GH200-144GB"),
    (r".*GH200.*96GB.*", "GH200-96GB"),
    (r".*MI300X.*", "MI300X"),
    (r"Intel (PVC GPU|Max 1550)", "Max-1550"),
    (r".*RTX PRO 6000 Blackwell Server.*", "RTX-PRO-6000-Server"),
    (r".*H100-SXM-80GB.*", "H100-SXM-80GB"),
    (r".*H200-SXM-141GB.*", "H200-SXM-141GB"),
)
"""Names that differ from the profiles', as the driver prints them too, with a space for each of its dashes."""
_WHOLE_BOX = re.compile(r"NVIDIA |AMD Instinct |Virtualized ")

_MODELS = {
    "LLaMA 8B": "meta-llama/Meta-Llama-3-8B",
    "LLaMA 70B": "meta-llama/Meta-Llama-3-70B",
    "nvidia/AceMath-7B-Instruct": "Qwen/Qwen2.5-7B-Instruct",
    "llama-2-7b": "meta-llama/Llama-2-7b-hf",
    "Qwen2.5-Coder-7B": "Qwen/Qwen2.5-7B-Instruct",
}
"""Names that are too short, or a fine-tune whose shape is that of another model."""
_GGUF = re.compile(r"^ggml-org/|-GGUF$|[-.](UD-)?(Q\d\w*|BF16|F16|mxfp4)(?=-GGUF|$)|-qat(?=-GGUF|$)", re.IGNORECASE)

_ENGINES = (
    (r"vllm", "vllm"),
    (r"sglang", "sglang"),
    (r"tensorrt-?_?llm|trtllm|triton_trtllm|nim \(tensorrt-llm\)", "tensorrt-llm"),
    (r"llama\.cpp", "llama-cpp"),
    (r"tgi\b", "tgi"),
    (r"deepspeed-mii", "deepspeed-mii"),
    (r"deepspeed$", "deepspeed"),
)
_WEIGHTS = {
    "fp16": "fp16",
    "f16": "fp16",
    "bf16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "fp4": "nvfp4",
    "nvfp4": "nvfp4",
    "int8": "int8",
    "int4": "int4",
    "q8_0": "q8_0",
    "q8_k_xl": "q8_0",
    "q4_0": "q4_k_m",
    "q4_k_m": "q4_k_m",
    "q4_k_xl": "q4_k_m",
}
"""Weight types by their names in benchmarks; GGUF types of nearly the same size share one."""
_CHECKPOINT = ("", "see model", "bf16/fp16", "bf16/fp16(auto)", "mxfp4", "fp8 (mxfp4 ckpt)", "fp4 (mxfp4 ckpt)")
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


def gpu_name(cell: str) -> str:
    """Return the hardware profile that *cell* means; raise `NotModelledError` if there is none."""
    # Some tools write the driver's "NVIDIA GeForce RTX 4090" with dashes.
    name = _known_gpu(cell) or _known_gpu(re.sub(r"[-_](?=\D)|(?<=\D)[-_]", " ", cell))
    if name is None:
        remedy = did_you_mean(cell, names("hardware")) or "; write one (docs/extending.md)"
        raise NotModelledError(f"no hardware profile for {cell!r}{remedy}")
    return name


def gpu_of(case: ServingCase) -> str:
    """Return the hardware profile of *case*.

    Two H100 of unstated kind read 35 GB of weights each in 19.6 ms: that is 90 % of what PCIe cards could with no time
    for anything else, so that these are SXM ones.
    """
    cell = case.text("gpu")
    return "H100-SXM-80GB" if cell == _UNSTATED and (case.whole("tp") or 1) > 1 else gpu_name(cell)


@functools.cache
def _known_gpu(cell: str) -> str | None:
    plain = _WHOLE_BOX.sub("", cell)
    known = [re.sub(pattern, name, cell) for pattern, name in _GPUS if re.fullmatch(pattern, cell)]
    for name in (*known, cell, plain, re.sub(r"-\d+GB$", "", plain)):
        try:
            return load_hardware(name).name
        except ProfileError:
            continue
    return None


@functools.cache
def _profile_path(name: str) -> str | None:
    try:
        return str(find("models", name))
    except ProfileError:
        return None


def model_name(case: ServingCase) -> str:
    """Return the path of the model profile; raise `NotModelledError` if there is none.

    Quantised checkpoints of DeepSeek leave attention in 16 bits, so that they have profiles of their own.
    """
    cell = case.text("model")
    plain = _GGUF.sub("", _GGUF.sub("", cell))
    name = _MODELS.get(plain, plain)
    if re.search(r"DeepSeek-(R1|V3)(-0528)?$", name) and case.text("weight_dtype") in ("nvfp4", "fp4"):
        name = "nvidia/DeepSeek-R1-NVFP4"
    path = _profile_path(name)
    if path is None and is_path(cell):
        raise NotModelledError(f"{cell!r} is where a model lay, not which one it is{IF_KNOWN}--assume model=NAME")
    if path is None:
        raise NotModelledError(f"no model profile for {cell!r}; add one: `python -m sim profiles add config.json`")
    return path


def is_moe(model: Model) -> bool:
    """Tell whether *model* has routed experts."""
    return any(isinstance(layers.mlp, MoeMlp) for layers in model.layers)


def version_of(case: ServingCase, assumed: list[str]) -> tuple[str, str, str]:
    """Return engine profile, version and the scheduler of that version.

    A version before the first or after the last that the profile knows takes the nearest; without one, the release of
    the run's date, else the latest.
    """
    cell = case.text("engine")
    kind = next((kind for pattern, kind in _ENGINES if re.match(pattern, cell, re.IGNORECASE)), None)
    if kind is None:
        raise NotModelledError(f"engine {cell!r} is not modelled")
    stated = _VERSION.search(case.text("engine_version")) or _VERSION.search(cell)
    of_date = current_release(kind, case.text("date"))
    version, scheduler = _nearest_version(kind, stated[0] if stated else of_date or "latest")
    if stated is None:
        assumed.append(f"{kind} {version} by date" if of_date else f"the newest {kind} that is known")
    elif stated[0] != version:
        end = "newest" if version == "latest" else "oldest"
        assumed.append(f"{kind} {stated[0]} as the {end} release that is known")
    return kind, version, scheduler


@functools.cache
def _nearest_version(kind: str, wanted: str) -> tuple[str, str]:
    engine = load_engine(kind)
    oldest = engine.versions[0].since
    order = [tuple(map(int, version.split("."))) for version in (wanted, oldest)] if wanted != "latest" else []
    for version in (wanted, oldest if order and order[0] < order[1] else "latest"):
        try:
            return version, engine.at(version).scheduler
        except ProfileError:
            continue
    raise NotModelledError(f"no version {wanted} of {kind}")


def quantization(case: ServingCase, model: Model) -> dict[str, Any]:
    """Return the weight type of a case as a `Quantization` takes it; empty where the checkpoint's own holds."""
    cell = case.text("weight_dtype").casefold()
    own = {model.checkpoint.weights, model.checkpoint.mlp, model.checkpoint.experts} - {None}
    if cell in _CHECKPOINT or "mxfp4" in own:
        return {}
    if cell.startswith("gguf"):
        # Made for Q4_0 (QAT), or Q8_0: a token of GLM-4.7-Flash comes sooner than its 16-bit weights could be read.
        return {"weights": "q4_k_m" if "qat" in case.text("model") else "q8_0"}
    if cell.startswith("q4_k_m ("):
        return {"weights": "q4_k_m"}
    if cell not in _WEIGHTS:
        raise NotModelledError(f"weights of type {case.text('weight_dtype')!r} are not modelled")
    dtype = _WEIGHTS[cell]
    if dtype == "fp8" and model.name.startswith("Qwen/Qwen3"):
        dtype = "fp8_block"  # the checkpoints in fp8 that Qwen publishes have scales of blocks
    if any(each is not None and each.startswith(dtype) for each in own):
        return {}  # a quantised checkpoint says itself which of its parts stay in 16 bits
    return {"weights": dtype}


def kv_dtype(case: ServingCase, model: Model, assumed: list[str]) -> str | None:
    """Return the type of the KV cache: as stated, else by what is known of the recipes behind the numbers.

    TensorRT-LLM keeps fp8 with quantised weights, as its own benchmarks do. InferenceX serves DeepSeek with SGLang on
    B200 and Llama-70B in fp8 with vLLM on H200 with fp8, too: 16 bits would queue where the runs did not.
    """
    cell = case.text("kv_dtype")
    if cell:
        return "bf16" if cell == "fp16" else cell
    engine, gpu, weights = case.text("engine"), case.text("gpu"), case.text("weight_dtype")
    quantised = weights in ("fp8", "nvfp4", "fp4", "fp8_block")
    in_eight_bits = quantised and (
        re.search("tensorrt|trtllm", engine, re.IGNORECASE) is not None
        or (engine == "sglang" and gpu.startswith("B200") and "DeepSeek" in model.name)
        or (engine == "vllm" and gpu.startswith("H200") and "70B" in case.text("model"))
    )
    if in_eight_bits:
        assumed.append("KV cache in fp8")
    return "fp8" if in_eight_bits else None
