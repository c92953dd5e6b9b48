"""The `size` command, run as the command line does."""

import argparse
import json

import pytest

from sim.errors import ConfigError, InfeasibleError
from sim.report.size import add_arguments, run_size

LLAMA = ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "H100-SXM-80GB", "--engine", "vllm@0.19"]


def run(capsys, *arguments):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    try:
        status = run_size(parser.parse_args(arguments))
    finally:
        text = capsys.readouterr().out
    return status, text


def failing(capsys, *arguments):
    with pytest.raises(InfeasibleError) as raised:
        run(capsys, *arguments)
    return raised.value


def test_json_is_one_object(capsys):
    status, text = run(capsys, *LLAMA, "--format", "json")
    size = json.loads(text)
    assert status == 0
    assert size["fits"] is True
    assert size["kv_bytes_per_token"] == 131_072
    assert size["weights_gib"] == pytest.approx(14.99, rel=0.01)


def test_flags_reach_the_plan(capsys):
    one = json.loads(run(capsys, *LLAMA, "--format", "json")[1])
    flags = ["--tp", "2", "--kv-dtype", "fp8", "--weights", "fp8", "--block-size", "32", "--format", "json"]
    two = json.loads(run(capsys, *LLAMA, *flags)[1])
    assert two["kv_bytes_per_token"] == one["kv_bytes_per_token"] / 4
    assert two["weights_gib"] < one["weights_gib"] / 3
    assert two["kv_tokens"] == two["kv_blocks"] * 32
    less = json.loads(run(capsys, *LLAMA, "--gpu-memory-utilization", "0.5", "--format", "json")[1])
    assert one["kv_gib"] - less["kv_gib"] == pytest.approx(0.4 * 79.11, rel=1e-3)


def test_table_says_what_a_buyer_asks(capsys):
    _, text = run(capsys, *LLAMA, "--max-model-len", "8192")
    for words in ("weights", "KV cache", "free", "[W", "tokens in", "sequences of 8,192 tokens at once", "headroom"):
        assert words in text


def test_context_is_counted(capsys):
    _, text = run(capsys, *LLAMA, "--context", "5000")
    assert "sequences of 5,000 tokens at once" in text


def test_infeasible_prints_and_raises(capsys):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    flags = ["--model", "meta-llama/Llama-3.3-70B-Instruct", "--gpu", "H100-SXM-80GB", "--format", "json"]
    with pytest.raises(InfeasibleError) as raised:
        run_size(parser.parse_args(flags))
    size = json.loads(capsys.readouterr().out)
    assert size["fits"] is False
    assert size["nearest"] == list(raised.value.nearest)
    assert "tp 2" not in size["nearest"]  # 131,072 tokens do not fit beside the weights on two cards
    assert "tp 4" in size["nearest"]


def test_what_cannot_be_cut_has_no_table(capsys):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    with pytest.raises(InfeasibleError, match=r"Nearest that fits: tp 2; or tp 4$"):
        run_size(parser.parse_args([*LLAMA, "--tp", "3"]))
    assert capsys.readouterr().out == ""


def test_sequences_that_must_fit(capsys):
    error = failing(capsys, *LLAMA, "--max-model-len", "32768", "--max-num-seqs", "20")
    assert "20 sequences of 32,768 tokens" in str(error)
    assert run(capsys, *LLAMA, "--max-model-len", "32768", "--max-num-seqs", "10")[0] == 0


def test_all_cards_are_ranked(capsys):
    arguments = ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "all", "--max-model-len", "8192"]
    cards = json.loads(run(capsys, *arguments, "--format", "json")[1])["cards"]
    fitting = [card for card in cards if card["fits"]]
    assert [card["tp"] for card in fitting] == sorted(card["tp"] for card in fitting)
    assert {"H100-SXM-80GB", "RTX-4090", "MI300X"} <= {card["gpu"] for card in fitting}
    assert "the smallest tp that fits" in run(capsys, *arguments)[1]


def test_a_card_in_the_ranking_is_as_by_itself(capsys):
    model = ["--model", "meta-llama/Llama-3.3-70B-Instruct", "--format", "json"]
    cards = {card["gpu"]: card for card in json.loads(run(capsys, *model, "--gpu", "all")[1])["cards"]}
    for gpu, tp in (("H100-SXM-80GB", "4"), ("L40S", "8")):  # with 8192 and 2048 tokens of an iteration by default
        alone = json.loads(run(capsys, *model, "--gpu", gpu, "--tp", tp)[1])
        assert cards[gpu] == {"gpu": gpu, "tp": int(tp), **alone}


def test_the_ranking_chooses_tp_itself(capsys):
    with pytest.raises(ConfigError, match="--tp does not go with --gpu all"):
        run(capsys, "--model", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "all", "--tp", "2")


def test_names_are_needed(capsys):
    with pytest.raises(ConfigError, match="--model and --gpu"):
        run(capsys, "--model", "meta-llama/Llama-3.1-8B-Instruct")


def test_experiment_gives_what_flags_leave_open(capsys, tmp_path):
    path = tmp_path / "exp.yaml"
    path.write_text(
        """
model: meta-llama/Llama-3.1-8B-Instruct
deployment: {gpu: H100-SXM-80GB, parallelism: {tp: 2}, quantization: {kv_cache: fp8}}
engine: {kind: vllm, version: "0.19", gpu_memory_utilization: 0.8, max_model_len: 4096}
workload:
  arrivals: {kind: poisson, rate: 1}
  lengths: {kind: fixed, input_tokens: 10, output_tokens: 10}
  num_requests: 1
"""
    )
    own = json.loads(run(capsys, str(path), "--format", "json")[1])
    flags = ["--tp", "2", "--kv-dtype", "fp8", "--gpu-memory-utilization", "0.8", "--max-model-len", "4096"]
    assert own == json.loads(run(capsys, *LLAMA, *flags, "--format", "json")[1])
    changed = json.loads(run(capsys, str(path), "--tp", "4", "--format", "json")[1])
    assert changed["kv_bytes_per_token"] == own["kv_bytes_per_token"] / 2
