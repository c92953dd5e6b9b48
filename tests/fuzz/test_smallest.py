"""The smallest inputs that the long run once found wrong: each is read, or refused in one line."""

import gzip
from pathlib import Path

import pytest
from fuzz.parsers import PARSERS

from sim.errors import SimError, TraceError
from sim.simulate.inputs import file_hash
from sim.workload.traces import file, read_trace

FOLDER = Path(__file__).parent
MODEL = (FOLDER.parents[1] / "profiles" / "models" / "Qwen" / "Qwen3-30B-A3B.yaml").read_bytes()
CASES = [
    ("set", "\U0001d518=1".encode()),
    ("set", b'name="\\ud800"'),
    ("set", b"workload.num_requests=0x" + b"f" * 5000),
    ("set", b"[key]=1"),
    ("set", b"prices.gpu_hour_usd.[key]=-1"),
    ("set", b"engine.[key].0.gpu=L4"),
    ("set", b"model=" + b"a" * 5000),
    ("sweep_paths", b"s=[{:1" + b"0" * 400 + b"}]"),
    ("deployment", b"{model: ~e, deployment: {gpu: ~f}, workload: {arrivals: {kind: trace, path: ~e}}}"),
    ("trace_companion", b"\xda"),
    ("trace_companion", b'{"d": 7, "": 7}\n{"": Infinity, "h": 1}'),
    ("trace", b'[{"a": "\\ud800"}]'),
    ("trace", b"[" * 100_000),
    ("trace", b'{"prompt": "c"}\n{"a": ""}\n'),
    ("trace", b'[{"conversations": []}, {"a": 1}]'),
    ("trace", b'{"timestamp":1,"input_length":1' + b"0" * 400 + b',"output_length":0,"hash_ids":[0,6]}'),
    (
        "trace",
        b'{"arrival_s":0,"input_tokens":8,"output_tokens":1}\n{"arrival_s":1e-320,"input_tokens":8,"output_tokens":1}',
    ),
    ("map_json", b'{"layer_list": [{"layer_id": Infinity}]}'),
    ("memory_cases", b"case,model,config_file,gpu,gpu_mem_gib,dtype_quant,vllm_version,status\n,,config.json,,-1,,,"),
    ("cases", b"case_id,engine,gpu,model,input_len,output_len,load_type,load_value,\xb1"),
    ("cases", b"case_id,engine,gpu,model,input_len,output_len,load_type,load_value\n,llama.cpp,GB10,m,5,2,batch,inf"),
    ("cases", b"case_id,engine,gpu,model,input_len,output_len,load_type,load_value\n,,~e,DeepSeek-R1-0528,,l,,4"),
    ("cases", b"case_id,engine,gpu,model,input_len,output_len,load_type,load_value\n1,2,3,4,5,6,7,8,9\n"),
    ("cases", gzip.compress(b"case_id,engine")[:-9]),
    (
        "kernels",
        b"gpu,operation,dtype,m,n,k,batch,context,heads,kv_heads,head_dim,experts,top_k,ranks,bytes,seconds,source\n\x80",
    ),
    ("run_result", b'{"output_throughput": []}'),
    ("run_result", b"[]"),
    ("run_manifest", b'{"seed": null}'),
    ("run_strides", b"PAR1"),
    (
        "config",
        (b'{"model_type":"mllama","text_config":{"hidden_size":4096,"intermediate_size":6,"model_type":"mllama_text_model",'
        b'"num_attention_heads":2,"num_hidden_layers":4},"vision_config":{"hidden_size":8,"num_hidden_layers":2,'
        b'"patch_size":4,"supported_aspect_ratios":NaN}}'),
    ),
    (
        "benchmark",
        (b",qps_target,,,,send_timestamp_unix,,latency_sec,,,,,output_token_count,,\n"
        b",,,,,,,,,,,,,,\n,1,,,,null,,7,,,,,,,"),
    ),
    ("model_used", MODEL.replace(b"count: 48", b"count: 1000000")),
    ("sweep_rows", (FOLDER / "unsupported.parquet").read_bytes()),
]


@pytest.mark.parametrize(("name", "content"), CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_it_is_read_or_refused_in_one_line(tmp_path, name, content):
    parser = PARSERS[name]
    path = tmp_path / parser.file
    path.parent.mkdir(parents=True, exist_ok=True)
    for beside, other in parser.beside().items():
        path.with_name(beside).write_bytes(other)
    path.write_bytes(content)
    try:
        parser.read(path)
    except SimError as refusal:
        assert "\n" not in str(refusal)  # noqa: PT017 - both outcomes are right


@pytest.mark.parametrize(
    "content",
    [b"\n" * (64 << 20), b"arrival_s,input_tokens,output_tokens\n" + b"0,1,1\n" * (2 << 20), b'{"a": "' * (4 << 20)],
)
def test_a_small_trace_does_not_unpack_to_a_large_one(tmp_path, monkeypatch, content):
    monkeypatch.setattr(file, "ALWAYS_UNPACKED", 1 << 18)
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(content, 9))
    with pytest.raises(TraceError, match=r"50 times|no kind of trace|million characters"):
        read_trace(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a file without an end is needed")
def test_a_line_that_never_ends_is_refused():
    with pytest.raises(TraceError, match="more than 16 million characters"):
        read_trace(Path("/dev/zero"))


def test_a_header_of_any_stated_length_is_hashed(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"\xff" * 8 + b"{}")
    assert len(file_hash(path)) == 64


def test_an_array_of_any_length_is_read_object_by_object(tmp_path):
    path = tmp_path / "x"
    row = '{"arrival_s": 1, "input_tokens": 2, "output_tokens": 3, "note": "' + "x" * 1000 + '"}'
    path.write_text("\n [" + ",\n".join([row] * 300) + "]")
    assert len(read_trace(path).rows) == 300
    path.write_text("[" + ",".join([row] * 300) + ",]")
    with pytest.raises(TraceError, match=r"x:301: expected one JSON object"):
        read_trace(path)
