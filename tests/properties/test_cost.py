"""What must hold for the step time of any model on any accelerator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from round_numbers import dense, engine, model, step_of
from serving import random_runs

from sim.batch import Batch, Chunk
from sim.cost import Affine
from sim.profiles.calibrated import Constant
from sim.profiles.layers import DenseMlp, GroupedAttention, LatentAttention, Layers, LinearAttention, MoeMlp
from sim.profiles.library import load_calibrated_hardware, load_hardware

WINDOW = 1024
GQA = GroupedAttention(heads=32, kv_heads=8, head_dim=64)
MODELS = {
    "dense": dense(layers=8, hidden=2048, heads=32),
    "windowed": dense(layers=8, hidden=2048, heads=32, window=WINDOW),
    "experts": model(
        Layers(count=6, attention=GQA, mlp=MoeMlp(experts=32, top_k=4, expert_intermediate=512)), hidden=2048
    ),
    "latent": model(
        Layers(
            count=6,
            attention=LatentAttention(
                heads=32, kv_lora_rank=512, nope_head_dim=128, rope_head_dim=64, v_head_dim=128
            ),
            mlp=DenseMlp(intermediate=4096),
        ),
        hidden=2048,
    ),
    "hybrid": model(
        Layers(count=6, attention=LinearAttention(params=2**24, state_bytes=1e6), mlp=DenseMlp(intermediate=4096)),
        Layers(count=2, attention=GQA, mlp=DenseMlp(intermediate=4096)),
        hidden=2048,
    ),
}
ACCELERATORS = ("A100-SXM-80GB", "H100-SXM-80GB", "B200-SXM-180GB", "L40S", "RTX-PRO-6000-Server", "MI300X")
HOSTS = [engine(), engine(2e-3, 1e-5, 1e-3, overlapped=True), engine(1e-3, 2e-5, 1e-3)]
chunks = st.lists(st.builds(Chunk, st.integers(1, 4096), st.integers(0, 16384)), max_size=6)
contexts = st.lists(st.integers(1, 20_000), max_size=40)


def _step(name, accelerator="H100-SXM-80GB", **changes):
    hardware = load_hardware(accelerator)
    factors, ramp = changes.pop("faster", {}), changes.pop("ramp", False)
    link = hardware.interconnect
    if "interconnect" in factors and link is not None:
        factors = factors | {"interconnect": link.model_copy(update={"bytes_per_s": 2 * link.bytes_per_s})}
    calibrated = load_calibrated_hardware(accelerator)
    if ramp:
        tables = {name: _ramping(getattr(calibrated, name)) for name in ("decode", "latent_decode")}
        calibrated = calibrated.model_copy(update=tables)
    return step_of(MODELS[name], hardware.model_copy(update=factors), calibrated, **changes)


def _ramping(table):
    """Let kernels reach their full rate after 20 us are lost."""
    late = {name: Constant(value=value, bounds=(0, 1)) for name, value in (("ramp", 0.6), ("ramp_s", 2e-5))}
    return {key: constants.model_copy(update=late) for key, constants in table.items()}


def _batch(name, chunks, contexts):
    windows = (sum(min(context, WINDOW) for context in contexts),) if name == "windowed" else ()
    return Batch(
        chunks=tuple(chunks),
        decodes=len(contexts),
        decode_context_tokens=sum(contexts),
        decode_window_tokens=windows,
        sampled=len(contexts) + len(chunks),
    )


cases = {
    "name": st.sampled_from(sorted(MODELS)),
    "chunks": chunks,
    "contexts": contexts,
    "parallelism": st.sampled_from([{}, {"tp": 2}, {"tp": 8}, {"tp": 2, "pp": 3}, {"pp": 4}]),
}


@random_runs(150)
@given(**cases, host=st.sampled_from(HOSTS), ramp=st.booleans())
def test_breakdown_and_limits_add_up_to_the_time(name, chunks, contexts, parallelism, host, ramp):
    step, batch = _step(name, host=host, ramp=ramp, **parallelism), _batch(name, chunks, contexts)
    pace = step.pace(batch)
    assert sum(step.breakdown(batch).values()) == pytest.approx(pace.first_s, rel=1e-12)
    assert all(seconds > 0 for seconds in step.breakdown(batch).values())
    if pace.first_s:
        assert sum(step.limits(batch).values()) == pytest.approx(1, rel=1e-12)


@random_runs(150)
@given(**cases, host=st.sampled_from(HOSTS), iterations=st.integers(1, 500), ramp=st.booleans())
def test_a_pace_equals_repeated_single_iterations(name, chunks, contexts, parallelism, host, iterations, ramp):
    step = _step(name, host=host, ramp=ramp, **parallelism)
    growing = (sum(context < WINDOW for context in contexts),) if name == "windowed" else ()
    pace = step.pace(_batch(name, [], contexts), growing)
    crossing = min((WINDOW - context for context in contexts if context < WINDOW), default=iterations)
    last = min(iterations, pace.iterations - 1, crossing if name == "windowed" else iterations)
    later = step.pace(_batch(name, [], [context + last for context in contexts]), growing)
    assert later.first_s == pytest.approx(pace.first_s + last * pace.growth_s, rel=1e-12)


@random_runs(150)
@given(
    **cases,
    accelerator=st.sampled_from(ACCELERATORS),
    better=st.sampled_from(["memory_bytes_per_s", "peak_flops", "interconnect"]),
)
def test_a_better_accelerator_is_never_slower(name, chunks, contexts, parallelism, accelerator, better):
    batch, hardware = _batch(name, chunks, contexts), load_hardware(accelerator)
    faster = {
        "memory_bytes_per_s": 2 * hardware.memory_bytes_per_s,
        "peak_flops": {dtype: 2 * rate for dtype, rate in hardware.peak_flops.items()},
        "interconnect": hardware.interconnect,
    }[better]
    plain = _step(name, accelerator, **parallelism).pace(batch).first_s
    assert _step(name, accelerator, faster={better: faster}, **parallelism).pace(batch).first_s <= plain * (1 + 1e-12)


@random_runs(200)
@given(
    **cases,
    accelerator=st.sampled_from(ACCELERATORS),
    more=st.sampled_from(["context", "sequence", "chunk", "longer chunk", "longer past"]),
    by=st.integers(1, 3000),
)
def test_more_work_is_never_faster(name, chunks, contexts, parallelism, accelerator, more, by):
    if "pp" in parallelism and more in ("sequence", "chunk"):
        more = "longer chunk"  # one sequence more may fill an idle stage, and thereby shorten the mean microbatch
    larger_chunks, larger_contexts = list(chunks), list(contexts)
    if more == "context":
        larger_contexts = [context + by for context in contexts]
    elif more == "sequence":
        mean = -(-sum(contexts) // max(1, len(contexts)))  # kernels walk along the mean sequence, shortened by one less
        larger_contexts.append(max(by, mean))
    elif more == "chunk":
        larger_chunks.append(Chunk(by, 0))
    elif chunks:
        longest = max(chunks)
        larger_chunks.remove(longest)
        grown = longest.tokens + by if more == "longer chunk" else longest.tokens
        larger_chunks.append(Chunk(grown, longest.past + (by if more == "longer past" else 0)))
    step = _step(name, accelerator, **parallelism)
    before = step.pace(_batch(name, chunks, contexts)).first_s
    after = step.pace(_batch(name, larger_chunks, larger_contexts)).first_s
    assert after >= before * (1 - 1e-12)


@random_runs(100)
@given(
    st.builds(
        Affine,
        base_s=st.integers(1, 2**10).map(lambda n: n * 2**-12),
        per_token_s=st.integers(0, 2**6).map(lambda n: n * 2**-14),
        per_context_token_s=st.integers(0, 2**6).map(lambda n: n * 2**-20),
        per_seq_s=st.integers(0, 2**6).map(lambda n: n * 2**-14),
    ),
    chunks,
    contexts,
)
def test_the_affine_line_is_exact_in_binary(line, chunks, contexts):
    step, batch = line.build(), _batch("dense", chunks, contexts)
    pace = step.pace(batch)
    assert sum(step.breakdown(batch).values()) == pace.first_s
    later = _batch("dense", chunks, [context + 7 for context in contexts])
    assert step.pace(later).first_s == pace.first_s + 7 * pace.growth_s


