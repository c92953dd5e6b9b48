"""The tables of kernel benchmarks: which rows are used, by rule, and what they say.

Extracted from aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0): one file an operation and system, one row a
shape, measured inside a CUDA graph. Every function returns an empty table where there is nothing to fit.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from calibration.kernels.routing import first_ranks
from sim.profiles.hardware import Hardware
from sim.profiles.quantization import bytes_per_element

__all__ = [
    "PACKAGE",
    "RAMPING",
    "RANKS_OF_SERVER",
    "Table",
    "all_reduce",
    "decode",
    "experts",
    "gemm",
    "has_large_cache",
    "latent_decode",
    "latent_prefill",
    "prefill",
]

RAMPING = ("A100-SXM-80GB", "H100-SXM-80GB", "H200-SXM-141GB")
"""Where TensorRT-LLM decodes grouped queries by kernels that reach their full rate only with some 60 MB of KV."""
RANKS_OF_SERVER = 8
"""Accelerators that NVIDIA's HGX boards and most PCIe servers join; beyond, what is measured crosses a network."""
_MILDEST_SKEW = 1.01
"""Exponent of the mildest power law in the tables."""
PACKAGE = "aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0)"
_EAGER = (("vllm", "fp8_block"),)
"""Timed without a CUDA graph: 60 to 300 us of launch in each row (aiconfigurator issue 1414)."""
_LARGE_CACHE_S = 50e-6
"""A cache is large that holds so much time of its memory's traffic: 96 MiB beside 864 GB/s, not beside 8 TB/s."""
_SIXTEEN_BIT_BYTES = 2.0
_HEAD_DIMS = (64, 128, 256)
_SERVED_TOKENS = 256
"""Shortest context and prompt that is fitted; below, launches are all there is."""
_SERVED_SEQUENCES = 512
_MOST_GROUPED = 32


@dataclass(frozen=True, slots=True)
class Table:
    """Shapes, one a row, with `seconds`, and where they are from.

    Attributes
    ----------
    excluded
        Rows that were left out by rule.
    skew
        Exponent of the power law by which experts were chosen; None where they were chosen evenly.
    """

    shapes: pd.DataFrame
    source: str
    sha256: str
    excluded: int
    skew: float | None = None

    def __len__(self) -> int:
        """Return the number of shapes."""
        return len(self.shapes)


def gemm(folder: Path, system: str, dtype: str, engines: tuple[str, ...], hardware: Hardware) -> Table:
    """Return products of LLM size (n and k at least 512).

    Left out: rows that read their weights faster than the memory can, which sat in the cache; and on
    accelerators whose cache is large for its memory, what TensorRT-LLM's benchmark, which does not rotate its
    weights, measured of 8-bit and smaller ones that fill less than half of the cache.
    """
    rows = _read(folder / f"gemm_{system}.csv.gz")
    rows = rows[(rows["dtype"] == dtype) & rows.backend_name.isin(engines) & (rows.n >= 512) & (rows.k >= 512)]
    eager = [pair in _EAGER for pair in zip(rows.backend_name, rows["dtype"], strict=True)]
    weights = rows.n * rows.k * _weight_bytes(dtype)
    possible = (weights + 2 * rows.m * (rows.n + rows.k)) / hardware.memory_bytes_per_s <= rows.seconds
    if has_large_cache(hardware) and _weight_bytes(dtype) < _SIXTEEN_BIT_BYTES:
        possible &= (weights >= (hardware.l2_bytes or 0.0) / 2) | (rows.backend_name != "trtllm")
    return _table(rows, possible & ~np.array(eager, dtype=bool), ["m", "n", "k"], f"gemm_{system}", dtype, engines)


def has_large_cache(hardware: Hardware) -> bool:
    """Tell whether the last-level cache holds much of the memory's traffic."""
    return (hardware.l2_bytes or 0.0) > _LARGE_CACHE_S * hardware.memory_bytes_per_s


def decode(folder: Path, system: str, kv: str, engines: tuple[str, ...], hardware: Hardware) -> Table:
    """Return decode attention as served: at least 256 tokens attended, at most 512 sequences.

    Left out: rows of TensorRT-LLM with more than 32 query heads a KV head, for which it has other kernels, up to 40
    times slower; where kernels ramp up (`RAMPING`) also those with 32 and with one, up to twice as slow; and rows that
    read twice what the last-level cache holds faster than the memory can, once launched (of TensorRT-LLM on A100 all
    that read 268 MB or more).
    """
    rows = _attention(folder / f"attn_gen_{system}.csv.gz", kv, engines)
    window = rows.window_size.fillna(0)
    rows = rows.assign(attended=np.where(window > 0, np.minimum(rows.kv_len, window), rows.kv_len))
    served = (rows.attended >= _SERVED_TOKENS) & (rows.batch_size <= _SERVED_SEQUENCES)
    group = rows.heads / rows.kv_heads
    usual = (group > 1) & (group < _MOST_GROUPED) if hardware.name in RAMPING else group <= _MOST_GROUPED
    served &= usual | (rows.backend_name != "trtllm")
    read_bytes = _bytes_attended(rows, kv)
    reading_s = rows.seconds - rows.seconds.min()
    possible = read_bytes <= np.maximum(2 * (hardware.l2_bytes or 0.0), hardware.memory_bytes_per_s * reading_s)
    shape = ["batch_size", "attended", "heads", "kv_heads", "head_dim"]
    return _table(rows, served & possible & rows.head_dim.isin(_HEAD_DIMS), shape, f"attn_gen_{system}", kv, engines)


def _bytes_attended(rows: pd.DataFrame, kv: str) -> pd.Series[float]:
    """Return the keys and values that each row reads [B]."""
    return rows.batch_size * rows.attended * rows.kv_heads * 2 * rows.head_dim * (2.0 if kv == "bfloat16" else 1.0)


def prefill(folder: Path, system: str, kv: str, engines: tuple[str, ...]) -> Table:
    """Return prefill attention of prompts of at least 256 tokens, without a past (the tables have none).

    TensorRT-LLM's over fp8 where it computes in fp8, too, as it does for fp8 weights.
    """
    rows = _attention(folder / f"attn_ctx_{system}.csv.gz", kv, engines)
    rows = rows.assign(window=rows.window_size.fillna(0).astype(int))
    served = (rows.isl >= _SERVED_TOKENS) & rows.head_dim.isin(_HEAD_DIMS) & (rows.past_kv == 0)
    served &= (rows.attn_dtype == rows.kv_cache_dtype) | (rows.backend_name != "trtllm")
    shape = ["batch_size", "isl", "heads", "kv_heads", "head_dim", "window"]
    return _table(rows, served, shape, f"attn_ctx_{system}", kv, engines)


def latent_decode(folder: Path, system: str, kv: str, engines: tuple[str, ...]) -> Table:
    """Return decode attention over the latent of DeepSeek V3, in the absorbed form."""
    rows = _attention(folder / f"mla_gen_{system}.csv.gz", kv, engines)
    served = (rows.kv_len >= _SERVED_TOKENS) & (rows.batch_size <= _SERVED_SEQUENCES)
    return _table(rows, served, ["batch_size", "kv_len", "num_heads"], f"mla_gen_{system}", kv, engines)


def latent_prefill(folder: Path, system: str, kv: str, engines: tuple[str, ...]) -> Table:
    """Return prefill attention with the widths of DeepSeek V3."""
    rows = _attention(folder / f"mla_ctx_{system}.csv.gz", kv, engines)
    served = (rows.isl >= _SERVED_TOKENS) & (rows.step == 0)
    return _table(rows, served, ["batch_size", "isl", "num_heads"], f"mla_ctx_{system}", kv, engines)


def experts(folder: Path, system: str, dtype: str, engines: tuple[str, ...], hardware: Hardware) -> Table:
    """Return the routed experts of the measured rank under balanced routing.

    Of the kernels that engines choose among by model, the one that ran most of the rows on one rank, and the one that
    did where experts are spread: over any number of ranks; over 8 at most on cards without a link of their own, and of
    TensorRT-LLM, which beyond takes up to three times as long for 128 to 2,048 tokens; not at all of SGLang with
    Triton. Experts of Nemotron (22 of 512, or 6 with width 1856) have no gate; kernels for these alone are left out.
    Without balanced rows, those of the mildest skew are taken. As in `gemm`, rows that read their weights faster than
    the memory can are left out.

    DeepSeek's rows (256 experts, 7,168 wide) are `grouped`: see `calibration.kernels.routing`.
    """
    rows = _read(folder / f"moe_{system}.csv.gz")
    rows = rows[(rows["dtype"] == dtype) & rows.backend_name.isin(engines)]
    rows = rows[~rows.kernel_source.str.endswith("_nongated")]
    if hardware.interconnect is None or engines == ("trtllm",):
        rows = rows[rows.moe_ep_size <= RANKS_OF_SERVER]
    if engines == ("sglang",):
        rows = rows[(rows.moe_ep_size == 1) | rows.kernel_source.str.contains("trtllm")]
    spread = rows.moe_ep_size > 1
    ran = rows.groupby([rows.kernel_source, spread]).kernel_source.transform("size")
    usual = ran == ran.groupby(spread).transform("max")
    skew = None if (rows.distribution == "balanced").any() else _MILDEST_SKEW
    routing = "balanced" if skew is None else f"power_law_{skew}"
    gateless = (rows.topk == 22) | ((rows.topk == 6) & (rows.inter_size == 1856))
    rows = rows.assign(matrices=np.where(gateless, 2, 3))
    shape = ["num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size"]
    rows = rows.assign(grouped=(rows.num_experts == 256) & (rows.hidden_size == 7168))
    shape += ["matrices", "grouped"]
    used = usual & (rows.distribution == routing)
    read_s = _expert_bytes(rows[used], dtype, skew) / hardware.memory_bytes_per_s
    used &= ~(read_s > rows.seconds[used]).reindex(rows.index, fill_value=False)
    return replace(_table(rows, used, shape, f"moe_{system}", f"{dtype} {routing}", engines), skew=skew)


def _expert_bytes(rows: pd.DataFrame, dtype: str, skew: float | None) -> pd.Series[float]:
    """Return the weights that the experts of each row read [B]."""
    touched, _ = first_ranks(rows, skew)
    params = rows.matrices * rows.hidden_size * rows.inter_size / rows.moe_tp_size
    return params * touched * _weight_bytes(dtype)


def all_reduce(folder: Path, system: str, ranks: int) -> Table:
    """Return vLLM's all-reduce of 1 KiB to 512 MiB in a CUDA graph, or where there is none, oneCCL's.

    The latter was measured with 16 and with 8 bits an element; of equal bytes, which differ by up to 14 % on Arc Pro
    B60, the mean counts.
    """
    rows = _read(folder / "comm_all.csv.gz")
    rows = rows[(rows.system == system) & (rows.ngpu == ranks) & (rows.op == "all_reduce")]
    graph = (rows["mode"] == "vllm_graph") & rows["dtype"].isin(("half", "bfloat16"))
    rows = rows[graph | (rows.library == "oneccl")]
    moved = (rows.bytes >= 2**10) & (rows.bytes <= 2**29)
    return _table(rows, moved, ["bytes"], "comm_all", f"{system} {ranks} ranks", tuple(set(rows.library)))


_OWN_NAMES = {
    "bfloat16": "bf16",
    "int4_wo": "int4",
    "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4",
    "sq": "int8",
}
"""Weight types that the tables call otherwise than `bytes_per_element`."""


def _weight_bytes(dtype: str) -> float:
    return bytes_per_element(_OWN_NAMES.get(dtype, dtype))


@functools.cache
def _read(path: Path) -> pd.DataFrame:
    rows: pd.DataFrame = pd.read_csv(path) if path.is_file() else pd.DataFrame()
    return rows.assign(seconds=rows.latency_ms * 1e-3, path=str(path)) if len(rows) else rows


def _attention(path: Path, kv: str, engines: tuple[str, ...]) -> pd.DataFrame:
    rows = _read(path)
    if rows.empty:
        return pd.DataFrame({name: pd.Series(dtype=float) for name in _ATTENTION_COLUMNS})
    return rows[(rows.kv_cache_dtype == kv) & rows.backend_name.isin(engines)]


_ATTENTION_COLUMNS = (
    *("batch_size", "kv_len", "isl", "past_kv", "step", "heads", "kv_heads", "num_heads", "head_dim"),
    *("window_size", "seconds", "path", "backend_name", "attn_dtype", "kv_cache_dtype"),
)


def _table(
    rows: pd.DataFrame, chosen: pd.Series[bool], shape: list[str], file: str, what: str, engines: tuple[str, ...]
) -> Table:
    """Average the chosen rows of equal shape on the log scale."""
    used = rows[chosen]
    log_s = np.log(used.seconds).groupby([used[name] for name in shape]).mean()
    shapes = np.exp(log_s).reset_index()
    source = f"{PACKAGE}, {file}: {what}, {' '.join(engines)}"
    path = Path(str(rows.path.iloc[0])) if len(rows) else None
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path else ""
    return Table(shapes, source, digest, len(rows) - len(used))
