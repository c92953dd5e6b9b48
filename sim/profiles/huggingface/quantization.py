"""`quantization_config` of a checkpoint: which type each part of the weights is stored in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sim.errors import did_you_mean
from sim.profiles.huggingface.config import Config
from sim.profiles.huggingface.modules import Modules, part_modules
from sim.profiles.layers import Layers
from sim.profiles.quantization import Dtype, Part, Quantization

__all__ = ["read_quantization"]

DEQUANTISED_HEAD = ("lm_head",)
"""What transformers leaves alone when the config names nothing."""


@dataclass(frozen=True, slots=True)
class Group:
    """Modules that share a type: those that *targets* match, or all linear layers if it is None."""

    dtype: Dtype
    targets: Modules | None
    activations: Dtype | None


@dataclass(frozen=True, slots=True)
class Scheme:
    """All groups of a checkpoint, the modules left in 16 bit, and the type of its KV cache."""

    groups: tuple[Group, ...]
    ignored: Modules
    kv_cache: Dtype | None = None

    def dtype_of(self, names: Sequence[str]) -> Dtype | None:
        """Return the type of a module that is known by any of *names*; None for 16 bit."""
        if self.ignored.match(names):
            return None
        named = (group.dtype for group in self.groups if group.targets is not None and group.targets.match(names))
        general = (group.dtype for group in self.groups if group.targets is None)
        return next(named, next(general, None))


def read_quantization(config: Config, layers: Sequence[Layers]) -> tuple[Quantization, list[str]]:
    """Return the types by part, and a note for each part whose modules are not all stored alike.

    Raises
    ------
    ProfileError
        For a method, a bit width or a group size that this program does not know.
    """
    scheme = _scheme(config)
    types: dict[Part, Dtype | None] = {}
    notes = [_unreadable_ignores(config)] if isinstance(config.data.get("ignore"), str) else []
    for part, modules in part_modules(layers).items():
        counts = Counter(scheme.dtype_of(names) for names in modules)
        types[part], most = counts.most_common(1)[0]
        if most < len(modules):
            notes.append(
                f"{part}: {most} of {len(modules)} modules are {types[part] or '16 bit'}, and all are counted so."
            )
    activations = scheme.groups[0].activations
    kv_cache = "fp8" if scheme.kv_cache == "fp8" else "int8" if scheme.kv_cache == "int8" else None
    return Quantization(**types, activations=activations, kv_cache=kv_cache), notes


def _scheme(config: Config) -> Scheme:
    method = config.text("quant_method") or ("modelopt" if config.has("quant_algo", "quantization") else "")
    reader = METHODS.get(method)
    if reader is None:
        config.fail(
            "quant_method", f"{method!r} is not a quantisation that this program reads{did_you_mean(method, METHODS)}"
        )
    return reader(config)


def _ignored(config: Config, *always: str) -> Modules:
    name, value = config.get("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")
    patterns = value if isinstance(value, list) else []
    for pattern in patterns:
        if not isinstance(pattern, str):
            config.fail(name, f"{pattern!r} is not the name of a module")
    return Modules([*patterns, *always], lambda message: config.fail(name, message))


def _unreadable_ignores(config: Config) -> str:
    return f"quantization_config.ignore is no list ({config.data['ignore'][:40]!r}): as if it held only lm_head."


def _fp8(config: Config) -> Scheme:
    """Weights in e4m3, one scale a tensor or a channel, or one a 128 x 128 block (DeepSeek, Qwen3-FP8)."""
    blocks = config.wholes("weight_block_size", 2, least=1)
    return Scheme((Group("fp8_block" if blocks else "fp8", None, "fp8"),), _ignored(config, *DEQUANTISED_HEAD))


def _four_bit(config: Config) -> Scheme:
    """AWQ and GPTQ: integers with a scale a group, activations in 16 bit."""
    dtype = _dtype(config, config.whole("bits", "w_bit", default=4), "int", _group_size(config, "group_size"))
    head = () if config.flag("lm_head", False) else DEQUANTISED_HEAD
    return Scheme((Group(dtype, None, None),), _ignored(config, *head))


def _mxfp4(config: Config) -> Scheme:
    return Scheme((Group("mxfp4", None, None),), _ignored(config, *DEQUANTISED_HEAD))


def _grouped(config: Config) -> Scheme:
    """compressed-tensors and ModelOpt: groups of modules, each with bits, type and group size."""
    groups = config.part("config_groups")
    if groups is None:
        return _algorithm(config)
    read = [_group(part) for name in groups.data if (part := groups.part(name)) is not None]
    if not read:
        config.fail("config_groups", "is empty")
    always = DEQUANTISED_HEAD if isinstance(config.data.get("ignore"), str) else ()
    return Scheme(tuple(read), _ignored(config, *always), _kv_cache(config))


def _group(group: Config) -> Group:
    weights, inputs = group.part("weights"), group.part("input_activations")
    if weights is None:
        group.fail("weights", "missing")
    targets = group.data.get("targets")
    if not isinstance(targets, list) or not all(isinstance(target, str) for target in targets):
        group.fail("targets", f"{str(targets)[:40]!r} is not a list of modules")
    everything = any(target == "Linear" for target in targets)
    modules = None if everything else Modules(targets, lambda message: group.fail("targets", message))
    return Group(_scheme_dtype(weights), modules, None if inputs is None else _scheme_dtype(inputs))


def _scheme_dtype(scheme: Config) -> Dtype:
    if scheme.text("strategy") == "block":
        return "fp8_block"
    return _dtype(scheme, scheme.whole("num_bits"), scheme.text("type", "int"), _group_size(scheme, "group_size"))


def _group_size(config: Config, name: str) -> int | None:
    size = config.whole(name, default=-1, least=-1)
    return size if size > 0 else None


def _dtype(config: Config, bits: int, kind: str, group: int | None) -> Dtype:
    """Return our name of a type; an integer of 4 bits with one scale a channel is nearest to groups of 128."""
    known: dict[tuple[int, str, int | None], Dtype] = {
        (4, "int", 32): "int4_g32",
        (4, "int", 64): "int4_g64",
        (4, "int", 128): "int4",
        (4, "int", None): "int4",
        (4, "float", 16): "nvfp4",
        (4, "float", 32): "mxfp4",
        (16, "float", None): "bf16",
    }
    if bits == 8 and kind in {"int", "float"}:
        return "int8" if kind == "int" else "fp8"
    if (bits, kind, group) not in known:
        config.fail(
            "num_bits" if config.has("num_bits") else "bits",
            f"{bits} bits {kind} in groups of {group} is not supported",
        )
    return known[bits, kind, group]


def _kv_cache(config: Config) -> Dtype | None:
    scheme = config.part("kv_cache_scheme")
    return None if scheme is None else _scheme_dtype(scheme)


ALGORITHMS: dict[str, Dtype] = {
    "FP8": "fp8",
    "NVFP4": "nvfp4",
    "W4A16_AWQ": "int4",
    "INT4_AWQ": "int4",
    "INT8_SQ": "int8",
}


def _algorithm(config: Config) -> Scheme:
    """ModelOpt without groups, also in `hf_quant_config.json`: one algorithm for all linear layers but the excluded."""
    inner = config.part("quantization") or config
    name = inner.text("quant_algo")
    if name not in ALGORITHMS:
        inner.fail(
            "quant_algo", f"{name!r} is not an algorithm that this program reads{did_you_mean(name, ALGORITHMS)}"
        )
    dtype = ALGORITHMS[name]
    activations = dtype if name in {"FP8", "NVFP4", "INT8_SQ"} else None
    kv_cache: Dtype | None = "fp8" if inner.text("kv_cache_quant_algo") == "FP8" else None
    return Scheme((Group(dtype, None, activations),), _ignored(inner, *DEQUANTISED_HEAD), kv_cache)


METHODS: dict[str, Callable[[Config], Scheme]] = {
    **dict.fromkeys(["fp8", "fbgemm_fp8"], _fp8),
    **dict.fromkeys(["awq", "gptq", "awq_marlin", "gptq_marlin"], _four_bit),
    "mxfp4": _mxfp4,
    **dict.fromkeys(["compressed-tensors", "modelopt", "modelopt_fp4"], _grouped),
}
