"""Names of the modules of a checkpoint, and the patterns by which a quantisation includes or leaves out some."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from sim.profiles.layers import DenseMlp, Layers, LinearAttention, MoeMlp
from sim.profiles.quantization import Part

__all__ = ["Modules", "part_modules"]

PREFIXES = ("language_model.model.", "model.language_model.", "language_model.", "model.")
"""What may stand before the names of a language model, in text models and nested in vision-language models."""
MOST_PATTERNS = 5000
NESTED_QUANTIFIER = re.compile(r"[*+}]\)*[*+{]")
"""Patterns such as (a+)+ can take for ever on a short name."""

# Each tuple holds the names that one module has in different architectures.
ATTENTION = (
    ("self_attn.q_proj", "self_attn.qkv_proj", "self_attn.q_b_proj", "self_attn.o_proj", "attn.wq_b", "mixer.q_proj"),
)
LINEAR = (
    (
        "linear_attn.in_proj_qkv",
        "linear_attn.in_proj_qkvz",
        "linear_attn.out_proj",
        "mixer.in_proj",
        "self_attn.q_proj",
    ),
)
EXPERTS = (
    (
        "mlp.experts.0.gate_proj",
        "mlp.experts",
        "block_sparse_moe.experts.0.w1",
        "feed_forward.experts.0.gate_proj",
        "mixer.experts.0.up_proj",
    ),
)
DENSE = (("mlp.gate_proj", "mlp.gate_up_proj", "mlp.up_proj", "feed_forward.gate_proj", "mixer.up_proj"),)
SHARED = (
    (
        "mlp.shared_experts.gate_proj",
        "mlp.shared_expert.gate_proj",
        "feed_forward.shared_expert.gate_proj",
        "mixer.shared_experts.up_proj",
    ),
)


class Modules:
    """A set of module names: exact ones, globs, and regular expressions after ``re:``.

    Parameters
    ----------
    patterns
        As the checkpoint writes them; a bare component such as ``lm_head`` stands for every module that contains it.
    fail
        Called with a message for a pattern that cannot be used; must raise.
    """

    def __init__(self, patterns: Iterable[str], fail: Callable[[str], object]) -> None:
        own = set(patterns)
        expressions = {pattern for pattern in own if pattern.startswith("re:")}
        globs = {pattern for pattern in own - expressions if any(mark in pattern for mark in "*?[")}
        if len(expressions) + len(globs) > MOST_PATTERNS:
            fail(f"{len(expressions) + len(globs)} patterns are more than {MOST_PATTERNS}")
        self.exact = {_without_prefix(pattern) for pattern in own - expressions - globs}
        self.expressions = [_compiled(pattern[3:], fail) for pattern in sorted(expressions)]
        stems = sorted(_without_prefix(glob) for glob in globs)
        self.glob = re.compile(
            "|".join(fnmatch.translate(glob) for stem in stems for glob in (stem, f"{stem}.*")) or "(?!)"
        )

    def match(self, names: Sequence[str]) -> bool:
        """Say whether any of *names*, which begin with ``layers.`` or stand alone, is in the set."""
        return any(
            not self.exact.isdisjoint(_pieces(name))
            or self.glob.match(name)
            or any(expression.match(prefix + name) for expression in self.expressions for prefix in ("", *PREFIXES))
            for name in names
        )


def _compiled(pattern: str, fail: Callable[[str], object]) -> re.Pattern[str]:
    if len(pattern) > 500 or NESTED_QUANTIFIER.search(pattern):
        fail(f"{pattern[:60]!r} is too complex a regular expression")
    try:
        return re.compile(pattern)
    except re.error as error:
        fail(f"{pattern[:60]!r} is not a regular expression: {error}")
        raise


def _without_prefix(pattern: str) -> str:
    """Return the pattern without the ways to nest a language model; MTP layers and vision towers keep their names."""
    prefix = next((prefix for prefix in PREFIXES if pattern.startswith(prefix)), "")
    return pattern.removeprefix(prefix)


def _pieces(name: str) -> Iterator[str]:
    """Return all runs of components of a dotted name."""
    parts = name.split(".")
    for start in range(len(parts)):
        for stop in range(start + 1, len(parts) + 1):
            yield ".".join(parts[start:stop])


def part_modules(layers: Sequence[Layers]) -> dict[Part, list[tuple[str, ...]]]:
    """Return by part one module a layer, under all names that it may have; parts that a model has not are left out."""
    found: dict[Part, list[tuple[str, ...]]] = {"head": [("lm_head", "language_model.lm_head")]}
    for index, layer in enumerate(layers):
        for part, modules in _of_layer(layer):
            found.setdefault(part, []).extend(tuple(f"layers.{index}.{name}" for name in names) for names in modules)
    return found


def _of_layer(layer: Layers) -> Iterator[tuple[Part, tuple[tuple[str, ...], ...]]]:
    if layer.attention is not None:
        yield "attention", LINEAR if isinstance(layer.attention, LinearAttention) else ATTENTION
    if isinstance(layer.mlp, DenseMlp):
        yield "mlp", DENSE
    if isinstance(layer.mlp, MoeMlp):
        yield "experts", EXPERTS
        if layer.mlp.shared_intermediate:
            yield "mlp", SHARED
