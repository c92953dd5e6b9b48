"""Only what was uploaded is read, and an upload is read as somebody else's words."""

import gzip

import pytest

from sim.errors import ConfigError, SimError, UserError
from sim.ui.example import CHAT_70B
from sim.ui.state import State
from sim.ui.uploads import MOST_BYTES, Uploads, plain

TRACE = b"arrival_s,input_tokens,output_tokens\n0,100,10\n1,200,20\n"
CONFIG = b"""{"architectures": ["LlamaForCausalLM"], "model_type": "llama",
"hidden_size": 2048, "num_hidden_layers": 16,
"intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
"max_position_embeddings": 8192, "torch_dtype": "bfloat16", "tie_word_embeddings": true}"""


@pytest.fixture
def uploads():
    return Uploads()


@pytest.fixture
def state(uploads):
    return State(CHAT_70B, uploads)


def test_a_trace_is_kept_under_a_safe_name_and_may_be_named(state, uploads):
    path = uploads.add("../../etc/my trace.csv", TRACE, "trace")
    assert path.parent == uploads.folder
    assert path.name == "my_trace.csv"
    state.set("workload.lengths", None)
    state.set("workload.arrivals", {"kind": "trace", "path": path.name})
    assert state.experiment().workload.arrivals.path.name == "my_trace.csv"


def test_a_gzipped_trace_is_unpacked(uploads):
    assert uploads.add("t.csv.gz", gzip.compress(TRACE), "trace").read_bytes() == TRACE


def test_a_model_may_be_named_by_its_upload_alone(state, uploads):
    name = uploads.add("config.json", CONFIG, "model").name
    state.set("model", name)
    assert state.experiment().model == "config.json"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model", "/etc/passwd"),
        ("model", "~/config.json"),
        ("model", "config.json"),
        ("model", "../config.json"),
        ("model", "."),
        ("deployment.gpu", "/tmp/x.yaml"),
        ("deployment.gpu", "x.yml"),
        ("engine.kind", "..\\..\\x"),
        ("engine.calibration", "/tmp/x.yaml"),
        ("engine.all_to_all", {"library": "../../x.yaml"}),
        ("workload.lengths.name", "/etc/hosts.yaml"),
        ("workload.arrivals", {"kind": "diurnal", "rate": 1, "profile": "../x.json"}),
        ("workload", {"arrivals": {"kind": "trace", "path": "/etc/passwd"}}),
        ("workload", {"arrivals": {"kind": "trace", "path": "trace.csv"}}),
        ("moe", {"popularity": {"kind": "measured", "path": "/etc/passwd"}}),
        ("moe", {"placement": {"kind": "fixed", "path": "map.json"}}),
        ("sweep", {"model": ["/etc/passwd"]}),
    ],
)
def test_no_path_of_the_server_is_opened(state, path, value):
    state.set(path, value)
    with pytest.raises(ConfigError, match="uploaded|path"):
        state.experiment()


def test_a_file_is_only_what_it_was_uploaded_as(state, uploads):
    uploads.add("trace.json", b'{"arrival_s": 0, "input_tokens": 10, "output_tokens": 5}\n', "trace")
    state.set("deployment.gpu", "trace.json")
    with pytest.raises(ConfigError, match="path"):
        state.experiment()


HOSTILE = [
    ("bomb.csv.gz", gzip.compress(b"0" * (MOST_BYTES + 10)), "trace"),
    ("broken.csv.gz", gzip.compress(TRACE)[:-9], "trace"),
    ("binary.csv", bytes(range(256)) * 10, "trace"),
    ("page.csv", b"<!DOCTYPE html><html><body>404</body></html>", "trace"),
    ("latin.csv", "arrival_s,input_tokens,output_tokens,caf\xe9\n".encode("latin-1"), "trace"),
    ("config.json", b"[" * 100_000, "model"),
    ("config.json", b"{}", "model"),
    ("pickle.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "loads"),
]


@pytest.mark.parametrize("place", range(len(HOSTILE)), ids=[f"{name} as {kind}" for name, _, kind in HOSTILE])
def test_a_hostile_upload_is_refused_and_not_kept(uploads, place):
    name, content, kind = HOSTILE[place]
    with pytest.raises(UserError) as refused:
        uploads.add(name, content, kind)
    assert uploads.names(kind) == []
    assert list(uploads.folder.iterdir()) == []
    assert str(uploads.folder) not in plain(refused.value)


def test_messages_name_no_folder_of_the_server():
    assert plain(SimError("/srv/app/profiles/models/x.yaml:3: 4 tokens/s; a/b")) == "x.yaml:3: 4 tokens/s; a/b"


def test_the_page_takes_no_endless_runs(state):
    state.set("workload.num_requests", 10_000_000)
    with pytest.raises(ConfigError, match=r"num_requests.*at most 200,000"):
        state.experiment()
