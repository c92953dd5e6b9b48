"""What is sent of a prompt: by layers, latents, windows and states, to ranks that share heads or hold all of them."""

from dataclasses import replace

from sim.memory.footprint import KvFootprint
from sim.profiles.library import load_model
from sim.profiles.parallelism import Parallelism
from sim.profiles.quantization import Quantization
from sim.speculation.mtp import Mtp


def footprint(model, tp=1, pp=1, **types):
    return KvFootprint.of(load_model(model), Quantization(**types), Parallelism(tp=tp, pp=pp))


def test_grouped_attention():
    # 32 layers of 8 heads of 128, keys and values, in 16 bits: 131,072 bytes a token, however the heads are shared out.
    for tp in (1, 2, 8):
        assert footprint("meta-llama/Llama-3.1-8B-Instruct", tp).moved_bytes(1000) == 131_072_000
    assert footprint("meta-llama/Llama-3.1-8B-Instruct", kv_cache="fp8").moved_bytes(1000) == 65_536_000
    assert footprint("meta-llama/Llama-3.1-8B-Instruct", 16).moved_bytes(1) == 2 * 131_072  # 8 heads on 16 ranks


def test_what_drafts_is_sent_too():
    model, eight = load_model("deepseek-ai/DeepSeek-V3"), Parallelism(tp=8)
    draft = Mtp(num_speculative_tokens=1, acceptance=0.8).draft(model, Quantization(), load_model)
    whole, single = (
        KvFootprint.of(model, Quantization(), eight, replace(draft, tp=tp)).moved_bytes(100) for tp in (None, 1)
    )
    latent = (512 + 64) * 2 * 100
    assert whole == 8 * 62 * latent
    assert single == (8 * 61 + 1) * latent
    assert KvFootprint.of(model, Quantization(), eight, draft).layers == 62


def test_every_rank_gets_the_latent():
    # 61 layers of 512 + 64 elements in 16 bits: 70,272 bytes a token.
    assert footprint("deepseek-ai/DeepSeek-V3").moved_bytes(100) == 7_027_200
    assert footprint("deepseek-ai/DeepSeek-V3", 8).moved_bytes(100) == 8 * 7_027_200


def test_stages_share_the_layers():
    whole, cut = (footprint("meta-llama/Llama-3.1-8B-Instruct", 2, pp) for pp in (1, 2))
    assert (whole.ranks, cut.ranks) == (2, 4)
    assert whole.moved_bytes(7) == cut.moved_bytes(7)


def test_a_window_moves_no_more_than_it_holds():
    # gpt-oss: of 36 layers with 8 heads of 64, every other one keeps 128 tokens.
    layer = 2 * 8 * 64 * 2
    assert footprint("openai/gpt-oss-120b").moved_bytes(1000) == 18 * layer * (1000 + 128)


def test_states_move_whole_and_once():
    model = load_model("Qwen/Qwen3-Next-80B-A3B-Instruct")
    short, long = (footprint(model.name).moved_bytes(tokens) for tokens in (1, 101))
    assert long - short == 100 * model.kv_bytes_per_token("bf16")
    assert short == model.kv_bytes_per_token("bf16") + model.state_bytes_per_sequence
    assert footprint(model.name).moved_bytes(0) == 0


def test_layers_are_those_of_the_model():
    assert footprint("meta-llama/Llama-3.1-8B-Instruct").layers == 32
