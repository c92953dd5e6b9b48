"""What the program does not do while it works, and what its web server is set to."""

import json
import socket
import tomllib
from pathlib import Path

import numpy as np
import pytest

from calibration.__main__ import main as calibration
from sim.__main__ import main as sim
from sim.errors import SimError
from sim.moe.recordings import arrays, read_loads
from sim.profiles.library import load_model
from sim.profiles.safetensors import HEADER_LIMIT_BYTES

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = str(ROOT / "experiments" / "8b_l40s_chat.yaml")
FEW = ("--set", "workload.num_requests=20")
SERVE = {"num_prompts": 8, "completed": 8, "request_throughput": 1.0, "output_throughput": 16.0, "mean_ttft_ms": 20.0}
CASES = """\
case_id,engine,engine_version,gpu,n_gpus,tp,mode,model,input_len,output_len,load_type,load_value,num_requests,quality,\
ttft_mean_ms,tpot_mean_ms
a,vllm,0.15.1,H100-SXM-80GB,1,1,agg,meta-llama/Llama-3.1-8B-Instruct,200,4,concurrency,1,2,ok,30,8
b,vllm,0.15.1,H100-SXM-80GB,1,1,agg,meta-llama/Llama-3.1-8B-Instruct,800,4,concurrency,2,2,ok,60,8.5
c,vllm,0.15.1,H100-SXM-80GB,1,1,agg,meta-llama/Llama-3.1-8B-Instruct,400,4,concurrency,2,4,ok,70,9
"""


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_arguments, **_options):
        raise AssertionError("a socket was opened")

    for name in ("socket", "create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    "command",
    [
        ("run", EXPERIMENT, *FEW, "--quiet", "--out", "{folder}/out"),
        ("size", "--model", "Qwen/Qwen3-8B", "--gpu", "L40S"),
        ("cost", EXPERIMENT, *FEW),
        ("trace", "inspect", str(ROOT / "experiments" / "traces" / "assistant_sessions.jsonl")),
    ],
    ids=lambda command: command[0],
)
def test_no_command_opens_a_socket(tmp_path, command):
    assert sim([word.format(folder=tmp_path) for word in command]) == 0


@pytest.mark.usefixtures("no_network")
def test_neither_import_nor_fit_opens_a_socket(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(SERVE))
    (tmp_path / "cases.csv").write_text(CASES)
    assert calibration(["import", str(tmp_path / "x.json")]) == 0
    assert calibration(["fit", str(tmp_path / "cases.csv"), "-o", str(tmp_path / "vllm.yaml")]) == 0


def test_the_web_server_is_closed_by_default():
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["showErrorDetails"] == "none"
    server = config["server"]
    assert (server["address"], server["enableXsrfProtection"], server["enableCORS"]) == ("localhost", True, True)
    assert server["maxUploadSize"] <= 20


@pytest.mark.parametrize("length", [0, 1, 2**27, 2**63 - 1, 2**64 - 1])
def test_the_header_of_tensors_is_bounded(tmp_path, length):
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 4,
        "vocab_size": 100,
    }
    config |= {"num_attention_heads": 8, "num_key_value_heads": 2, "max_position_embeddings": 512}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "x.safetensors").write_bytes(length.to_bytes(8, "little") + b"{}")
    assert HEADER_LIMIT_BYTES <= 100_000_000
    with pytest.raises(SimError, match="safetensors"):
        load_model(str(tmp_path))


def test_an_archive_that_unpacks_to_more_than_is_read_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "MAX_BYTES", 1 << 20)
    np.savez_compressed(tmp_path / "x.npz", logical_count=np.zeros((4, 1024, 1024)))
    with pytest.raises(SimError, match="unpacks to more than 1 MiB"):
        read_loads(tmp_path / "x.npz")
