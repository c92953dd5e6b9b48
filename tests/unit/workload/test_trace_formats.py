"""Every kind of trace from a small sample in its own form, and every way in which a file can be bad."""

import gzip
import json
import math
import re

import pytest
from hypothesis import HealthCheck, given, settings, strategies

from sim.errors import TraceError
from sim.workload.traces import all_adapters, read_trace

CANONICAL = """\
{"arrival_s": 0.25, "input_tokens": 512, "output_tokens": 128, "segments": [["sys", 256], ["doc7", 200]], \
"output_segment": "a0", "session_id": "a", "turn": 0, "priority": 2, "class": "chat"}

{"arrival_s": 1, "input_tokens": 700, "output_tokens": 9, "session_id": "a", "turn": 1, "think_s": 3.0, "ttft_ms": 81.5}
"""
AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:17:03.9799600,4808,10\r\n"
    "2023-11-16 18:17:04+00:00,3180,8\r\n"
    "2023-11-16 18:17:05.009930+00:00,110,27"
)
MOONCAKE = """\
{"timestamp": 27000, "input_length": 1300, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 30000, "input_length": 1500, "output_length": 6, "hash_ids": [0, 1, 3]}
{"timestamp": 30000, "input_length": 1000, "output_length": 7, "hash_ids": [0, 4]}
{"timestamp": 33000, "input_length": 1536, "output_length": 8, "hash_ids": [0, 1, 3]}
"""
BURSTGPT = """\
Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
19440110.0,s1,43,GPT-4,906,446,1352,Conversation log
19440161.0,,2,ChatGPT,36,29,65,API log
19440192.0,s1,8,GPT-4,1779,0,1779,Conversation log
19440254.0,s1,3,GPT-4,935,178,1113,Conversation log
"""
BAILIAN = """\
{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 40, "output_length": 132, "type": "text",\
 "turn": 1, "hash_ids": [7, 8, 9]}
{"chat_id": 160, "parent_chat_id": 159, "timestamp": 62.5, "input_length": 70, "output_length": 80, "type": "text",\
 "turn": 2, "hash_ids": [7, 8, 10, 11, 12]}
"""
RAGPULSE = """\
{"timestamp": "82", "input_length": 100, "output_length": 192, "hash_ids": {"sys_prompt": [1, 2], "passages_ids": [30],\
 "history": [], "web_search": [], "user_input": [4]}, "session_id": "x"}
{"timestamp": "93", "input_length": 90, "output_length": 86, "hash_ids": {"sys_prompt": [1, 2], "passages_ids": [31],\
 "history": [], "web_search": [], "user_input": [5]}, "session_id": "x"}
"""
CLAUDE_CODE = """\
{"id": "t1", "block_size": 64, "hash_id_scope": "local", "requests": [\
{"t": 0.0, "in": 200, "out": 5, "hash_ids": [1, 2, 3], "think_time": 0.0, "model": "m"}, \
{"t": 9.0, "type": "subagent", "requests": [{"t": 0.5, "in": 64, "out": 3, "hash_ids": [50], "think_time": 0.0}]}, \
{"t": 30.0, "in": 260, "out": 7, "hash_ids": [1, 2, 3, 4], "think_time": 12.0, "model": "m"}]}
{"id": "t2", "block_size": 64, "hash_id_scope": "local", "requests": [\
{"t": 0.0, "in": 128, "out": 5, "hash_ids": [1, 2], "think_time": 0.0}]}
"""
CLAUDE_CODE_TABLE = """\
trace_id,subagent_depth,t_s,input_tokens,output_tokens,prefix_hit_tokens_block64_local,api_time_s,think_time_s
t1,0,0.0,200,5,0,7.3,0.0
t1,0,10.0,300,5,192,7.3,2.0
t1,1,0.0,64,3,0,2.8,0.0
t1,1,3.0,100,3,64,2.8,1.0
t1,1,0.0,80,3,0,2.8,0.0
t1,0,40.0,320,5,256,7.3,20.0
t2,0,0.0,100,5,0,7.3,0.0
"""
TRACELAB = """\
session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms
0,117,0,0,2318,200,300
0,117,1,2518,348,131,154
1,393,0,0,861,107,273
"""
VIDUR = "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3772,54,3826,69.85\n10,5,15,2\n"
REQUEST_LOG = """\
index,tenant,arrival_s,send_delay_ms,input_tokens,server_input_tokens,output_tokens,ttft_ms,tpot_ms,e2e_ms,has_error
0,A,0.5,250,1024,1010,128,72.8,12.4,1652.7,0
1,B,0.75,0,1024,,,,,,1
"""


def read(tmp_path, content, name="trace", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_trace(path, **options)


def columns(trace, *names):
    return [tuple(getattr(row, name) for name in names) for row in trace.rows]


def test_canonical(tmp_path):
    trace = read(tmp_path, CANONICAL)
    assert (trace.format, trace.failed, trace.warnings) == ("canonical", 0, ())
    first, second = trace.rows
    assert (first.arrival_s, first.input_tokens, first.output_tokens) == (0.25, 512, 128)
    assert first.segments == (("sys", 256), ("doc7", 200))
    assert (first.output_segment, first.session_id, first.turn, first.think_s) == ("a0", "a", 0, None)
    assert (first.priority, first.traffic_class, first.request_id) == (2, "chat", "0")
    assert (second.turn, second.think_s, second.ttft_ms, second.priority) == (1, 3.0, 81.5, 0)
    assert math.isnan(second.e2e_ms)


def test_canonical_columns_as_csv(tmp_path):
    trace = read(tmp_path, "request_id,arrival_s,input_tokens,output_tokens,think_s\nr7,1.5,10,20,\nr8,2,11.0,21,4\n")
    assert trace.format == "canonical"
    assert columns(trace, "request_id", "arrival_s", "input_tokens", "output_tokens", "think_s") == [
        ("r7", 1.5, 10, 20, None),
        ("r8", 2.0, 11, 21, 4.0),
    ]


def test_a_misspelt_key_is_told(tmp_path):
    trace = read(tmp_path, '{"arrival_s": 0, "input_tokens": 1, "output_tokens": 1, "sesion_id": "a"}')
    assert trace.warnings == ("unknown column 'sesion_id' is ignored (did you mean 'session_id'?)",)


def test_azure(tmp_path):
    trace = read(tmp_path, AZURE)
    assert trace.format == "azure"
    assert columns(trace, "input_tokens", "output_tokens") == [(4808, 10), (3180, 8), (110, 27)]
    assert [row.arrival_s for row in trace.rows] == pytest.approx([0.0, 0.02004, 1.02997], abs=1e-6)


def test_mooncake(tmp_path):
    trace = read(tmp_path, MOONCAKE)
    assert trace.format == "mooncake"
    assert [row.arrival_s for row in trace.rows] == [0.0, 3.0, 3.0, 6.0]
    first, second, third, fourth = (row.segments for row in trace.rows)
    # Prompts 1 and 2 share two blocks, 1 and 3 one block, 2 and 4 all of 2: cuts after 512, 1024 and 1500 tokens.
    assert [tokens for _, tokens in first] == [512, 512, 276]
    assert [tokens for _, tokens in second] == [512, 512, 476]
    assert [tokens for _, tokens in third] == [512, 488]
    assert [tokens for _, tokens in fourth] == [512, 512, 476, 36]
    assert first[:2] == second[:2] == fourth[:2]
    assert first[0] == third[0]
    assert second[2] == fourth[2]
    assert len({first[2], second[2], third[1], fourth[3]}) == 4


def test_mooncake_without_hashes(tmp_path):
    trace = read(tmp_path, '{"timestamp": 5, "input_length": 20, "output_length": 3}\n')
    assert trace.format == "mooncake"
    assert [tokens for _, tokens in trace.rows[0].segments] == [20]


def test_hashes_need_not_be_chained(tmp_path):
    # Block 2 comes after block 1 in one prompt and first in the other: no common beginning.
    rows = [{"timestamp": 0, "input_length": 1024, "output_length": 1, "hash_ids": ids} for ids in ([1, 2], [2, 9])]
    first, second = read(tmp_path, "\n".join(map(json.dumps, rows))).rows
    assert not set(first.segments) & set(second.segments)


def test_burstgpt(tmp_path):
    trace = read(tmp_path, BURSTGPT)
    assert (trace.format, trace.failed) == ("burstgpt", 1)
    assert trace.warnings == ("1 of 4 requests had no answer and are left out",)
    assert columns(trace, "arrival_s", "input_tokens", "output_tokens", "session_id", "turn", "traffic_class") == [
        (0.0, 906, 446, "s1", 0, "GPT-4"),
        (51.0, 36, 29, None, 0, "ChatGPT"),
        (144.0, 935, 178, "s1", 2, "GPT-4"),
    ]


def test_burstgpt_without_sessions(tmp_path):
    trace = read(
        tmp_path, "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,472,18,490,x\n"
    )
    assert columns(trace, "arrival_s", "input_tokens", "session_id") == [(0.0, 472, None)]


def test_bailian(tmp_path):
    trace = read(tmp_path, BAILIAN)
    assert trace.format == "bailian"
    assert columns(trace, "session_id", "turn", "request_id", "traffic_class") == [
        ("159", 0, "159", "text"),
        ("159", 1, "160", "text"),
    ]
    first, second = (row.segments for row in trace.rows)
    assert [tokens for _, tokens in first] == [32, 8]
    assert [tokens for _, tokens in second] == [32, 38]
    assert first[0] == second[0]


def test_ragpulse(tmp_path):
    trace = read(tmp_path, RAGPULSE)
    assert trace.format == "ragpulse"
    assert columns(trace, "arrival_s", "session_id", "turn", "segments") == [(0.0, "x", 0, ()), (11.0, "x", 1, ())]
    assert "prompts share nothing" in trace.warnings[0]


def test_ragpulse_with_the_lengths_of_pieces(tmp_path):
    (tmp_path / "1_sys_prompt.jsonl").write_text(
        '{"sys_prompt_id": 1, "token_length": 40}\n{"id": 2, "token_length": 10}'
    )
    (tmp_path / "2_passages.jsonl").write_text('{"passage_id": 30, "token_length": 45}\n{"id": 31, "token_length": 45}')
    trace = read(tmp_path, RAGPULSE)
    assert columns(trace, "segments") == [((("1", 40), ("2", 10), ("30", 45)),), ((("1", 40), ("2", 10), ("31", 40)),)]
    assert trace.warnings == ()


def test_claude_code_sessions(tmp_path):
    trace = read(tmp_path, CLAUDE_CODE)
    assert trace.format == "claude_code"
    assert columns(trace, "arrival_s", "session_id", "turn", "think_s", "input_tokens") == [
        (0.0, "t1", 0, None, 200),
        (0.0, "t2", 0, None, 128),
        (9.5, "t1/1", 0, None, 64),
        (30.0, "t1", 1, 12.0, 260),
    ]
    first, other, subagent, second = (row.segments for row in trace.rows)
    assert [tokens for _, tokens in first] == [192, 8]  # three full blocks are shared, the rest is its own
    assert [tokens for _, tokens in second] == [192, 68]
    assert first[0] == second[0]
    assert not {*first, *second} & {*other, *subagent}  # hashes hold within a session only


def test_claude_code_table(tmp_path):
    trace = read(tmp_path, CLAUDE_CODE_TABLE)
    assert trace.format == "claude_code_table"
    by_id = {row.request_id: row for row in trace.rows}
    assert [(row.session_id, row.turn, row.arrival_s, row.think_s) for row in map(by_id.get, "0123456")] == [
        ("t1", 0, 0.0, None),
        ("t1", 1, 10.0, 2.0),
        ("t1/1", 0, 10.0, None),  # begins when its session sent last
        ("t1/1", 1, 13.0, 1.0),
        ("t1/2", 0, 10.0, None),  # the clock is set back: another subagent
        ("t1", 2, 40.0, 20.0),
        ("t2", 0, 0.0, None),
    ]
    assert by_id["0"].segments[0] == by_id["1"].segments[0] == by_id["5"].segments[0]
    assert by_id["0"].segments[0][1] == 192
    assert by_id["1"].segments[:2] == by_id["5"].segments[:2]
    assert sum(tokens for _, tokens in by_id["5"].segments[:2]) == 256
    assert by_id["2"].segments[0] == by_id["3"].segments[0] == ("t1/1/0", 64)


def test_tracelab(tmp_path):
    trace = read(tmp_path, TRACELAB)
    assert trace.format == "tracelab"
    assert columns(trace, "session_id", "turn", "think_s", "input_tokens", "output_tokens", "output_segment") == [
        ("0", 0, None, 2318, 200, "0/answer-0"),
        ("0", 1, 0.3, 2866, 131, "0/answer-1"),
        ("1", 0, None, 861, 107, "1/answer-0"),
    ]
    assert [row.arrival_s for row in trace.rows] == pytest.approx([0.0, 0.0, 0.276])
    # The second prompt is the first one, its answer and what is new.
    assert trace.rows[1].segments == (("0/0", 2318), ("0/answer-0", 200), ("0/1", 348))


def test_vidur(tmp_path):
    trace = read(tmp_path, VIDUR)
    assert trace.format == "vidur"
    assert columns(trace, "arrival_s", "input_tokens", "output_tokens") == [(0.0, 3772, 54), (0.0, 10, 5)]
    assert "have no time" in trace.warnings[0]
    timed = read(tmp_path, "arrived_at,num_prefill_tokens,num_decode_tokens\n2.5,7,8\n4.0,9,1\n")
    assert columns(timed, "arrival_s") == [(0.0,), (1.5,)]
    assert timed.warnings == ()


def test_request_log(tmp_path):
    trace = read(tmp_path, REQUEST_LOG)
    assert (trace.format, trace.failed) == ("request_log", 1)
    (row,) = trace.rows
    assert (row.arrival_s, row.input_tokens, row.output_tokens, row.traffic_class) == (0.75, 1010, 128, "A")
    assert (row.ttft_ms, row.tpot_ms, row.e2e_ms) == (72.8, 12.4, 1652.7)


SHAREGPT = json.dumps(
    [
        {"id": "a", "conversations": [{"from": "human", "value": "x" * 400}, {"from": "gpt", "value": "y" * 800}]},
        {"id": "b", "conversations": [{"from": "human", "value": "x" * 400}]},
        {"id": "c", "conversations": [{"from": "human", "value": "x" * 8}, {"from": "gpt", "value": "y" * 800}]},
        {"id": "d", "conversations": [{"from": "human", "value": "x" * 4400}, {"from": "gpt", "value": "y" * 80}]},
    ],
    indent=1,
)
VLLM_CUSTOM = """\
{"prompt": "What is the capital of India?"}
{"prompt": "What is the capital of Iran?", "output_tokens": 1520}
"""
SAMPLES = {
    "azure": AZURE,
    "bailian": BAILIAN,
    "burstgpt": BURSTGPT,
    "canonical": CANONICAL,
    "claude_code": CLAUDE_CODE,
    "claude_code_table": CLAUDE_CODE_TABLE,
    "mooncake": MOONCAKE,
    "ragpulse": RAGPULSE,
    "request_log": REQUEST_LOG,
    "sharegpt": SHAREGPT,
    "tracelab": TRACELAB,
    "vidur": VIDUR,
    "vllm_custom": VLLM_CUSTOM,
}


def test_of_a_conversation_the_first_question_and_answer_are_asked_as_benchmarks_do(tmp_path):
    trace = read(tmp_path, SHAREGPT)
    assert [(row.request_id, row.input_tokens, row.output_tokens) for row in trace.rows] == [("a", 100, 200)]
    assert "3 conversations are left out" in trace.warnings[0]
    assert "4 characters" in trace.warnings[1]
    assert "no times" in trace.warnings[2]


def test_prompts_without_a_length_get_the_256_tokens_of_the_benchmark(tmp_path):
    trace = read(tmp_path, VLLM_CUSTOM)
    assert [(row.input_tokens, row.output_tokens) for row in trace.rows] == [(7, 256), (7, 1520)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "expected one JSON object after the other"),
        ('[{"conversations": 3}]', "is not a list of turns"),
        ('[{"conversations": []}, {"conver', "not JSON"),
        ('{"prompt": 3}', "prompt: 3 is not a text"),
    ],
)
def test_texts_that_cannot_be_read(tmp_path, text, message):
    with pytest.raises(TraceError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize("name", all_adapters())
def test_every_format_is_told_from_the_others_gzipped_or_not(tmp_path, name):
    plain = read(tmp_path, SAMPLES[name])
    zipped = read(tmp_path, gzip.compress(SAMPLES[name].encode()), name="trace.gz")
    named = read(tmp_path, SAMPLES[name], format=name)
    assert plain.format == zipped.format == named.format == name
    assert repr(plain) == repr(zipped) == repr(named)  # by text, since nan is not equal to itself
    for row in plain.rows:
        assert sum(tokens for _, tokens in row.segments) <= row.input_tokens


def test_a_byte_order_mark_and_blank_lines_do_not_matter(tmp_path):
    assert len(read(tmp_path, "\ufeff\n" + CANONICAL + "\n\n").rows) == 2


def test_rows_out_of_order_are_sorted_and_told(tmp_path):
    trace = read(tmp_path, "arrival_s,input_tokens,output_tokens\n2,1,1\n1,2,1\n2,3,1\n0.5,4,1\n")
    assert [row.input_tokens for row in trace.rows] == [4, 2, 1, 3]  # equal times keep the order of the file
    assert trace.warnings == ("2 rows are earlier than the row before them; the requests are sorted by arrival",)
    assert [row.request_id for row in trace.rows] == ["3", "1", "0", "2"]


def test_a_limit_counts_answered_requests_and_reads_no_further(tmp_path):
    trace = read(tmp_path, BURSTGPT.replace("GPT-4,935", "GPT-4,broken"), limit=2)
    assert [row.input_tokens for row in trace.rows] == [906, 36]
    assert len(read(tmp_path, CLAUDE_CODE, limit=2).rows) == 2


ROW = '{"arrival_s": 0, "input_tokens": 10, "output_tokens": 1}\n'


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (ROW + '{"arrival_s": 0, "input_tokens": 10}\n', 2, "no value for 'output_tokens'"),
        (ROW + '{"arrival_s": 0, "input_tokens": "ten", "output_tokens": 1}', 2, "input_tokens: 'ten' is not a finite"),
        (
            ROW + '{"arrival_s": 0, "input_tokens": 1.5, "output_tokens": 1}',
            2,
            "input_tokens: 1.5 is not a whole number",
        ),
        (ROW + '{"arrival_s": 0, "input_tokens": true, "output_tokens": 1}', 2, "input_tokens: True is not a finite"),
        (ROW + '{"arrival_s": NaN, "input_tokens": 1, "output_tokens": 1}', 2, "NaN is not a number"),
        (ROW + '{"arrival_s": "inf", "input_tokens": 1, "output_tokens": 1}', 2, "arrival_s: 'inf' is not a finite"),
        (ROW + '{"arrival_s": -1, "input_tokens": 1, "output_tokens": 1}', 2, "arrival at -1 s"),
        (ROW + '{"arrival_s": 1e308, "input_tokens": 1, "output_tokens": 1}', 2, "more than 1e+12 s"),
        (ROW.replace("}", ', "id": "\\ud800"}'), 1, "not JSON: 'utf-8' codec can't encode character"),
        ("arrival_s,input_tokens,input_tokens,output_tokens\n0,1,2,3\n", 1, "column 'input_tokens' is there twice"),
        (ROW + '{"arrival_s": 0, "input_tokens": 0, "output_tokens": 1}', 2, "a prompt of 0 tokens"),
        (ROW + '{"arrival_s": 0, "input_tokens": 1, "output_tokens": 0}', 2, "an answer of 0 tokens"),
        (ROW + '{"arrival_s": 0, "input_tokens": 1, "output_tokens": -3}', 2, "an answer of -3 tokens"),
        (ROW.replace("}", ', "segments": [["a", 6], ["b", 5]]}'), 1, "segments of 11 tokens in a prompt of 10"),
        (ROW.replace("}", ', "segments": [["a"]]}'), 1, "['a'] is not [name, tokens]"),
        (ROW.replace("}", ', "segments": "a"}'), 1, "is not a list of"),
        (ROW.replace("}", ', "turn": -1}'), 1, "turn -1"),
        (ROW.replace("}", ', "think_s": -1}'), 1, "think_s"),
        (ROW.replace("}", ', "session_id": ["a"]}'), 1, "session_id"),
        (ROW + "{oops}\n", 2, "not JSON"),
        (ROW + "[1, 2]\n", 2, "expected one JSON object a line"),
        ("arrival_s,input_tokens,output_tokens\n0,1,1\n\n0,1\n", 4, "2 cells under a header of 3"),
        ("arrival_s,input_tokens,output_tokens\n0,1,\n", 2, "no value for 'output_tokens'"),
        ("arrival_s,input_tokens,output_tokens\n0,1,nan\n", 2, "output_tokens: 'nan' is not a finite number"),
        ('arrival_s,input_tokens,output_tokens\n0,1,"1\n', 2, "not CSV"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n", 2, "'yesterday' is not a date and time"),
        (MOONCAKE.replace("[0, 4]", "[0]"), 3, "1 hash_ids for a prompt of 1000 tokens, which has 2 blocks of 512"),
        (ROW.replace("10", "99999999999"), 1, "more than 2147483647 tokens"),
        (RAGPULSE.replace("[31]", "[[31]]"), 2, "passages_ids"),
        (RAGPULSE.replace("[31]", "31"), 2, "passages_ids"),
        (MOONCAKE.replace("[0, 4]", '"04"'), 3, "hash_ids is not a list"),
        (MOONCAKE.replace("}", ', "block_size": 0}'), 1, "blocks of 0 tokens"),
        (CLAUDE_CODE_TABLE.replace("t1,1,0.0,64", "t1,2,0.0,64"), 4, "subagent_depth: 2 after a row of depth 0"),
        ('{"id": "a", "block_size": 64, "requests": 3}', 1, "requests is not a list of objects"),
    ],
)
def test_a_bad_row_is_told_with_its_line(tmp_path, content, line, message):
    with pytest.raises(TraceError) as caught:
        read(tmp_path, content)
    assert str(caught.value).startswith(f"{tmp_path}/trace:{line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no requests in it"),
        ("arrival_s,input_tokens,output_tokens\n", "no requests in it"),
        (BURSTGPT.replace(",446,", ",0,").replace(",29,", ",0,").replace(",178,", ",0,"), "no request with an answer"),
        ("arrival,input_tokens,output_tokens\n1,2,3\n", "(did you mean 'arrival_s'?)"),
        ("arrival_s,input_tokens\n1,2\n", "1: missing: output_tokens; the columns are arrival_s, input_tokens"),
        ("a,b\n1,2\n", "no kind of trace has the columns a, b; the plain one has arrival_s, input_tokens and"),
        (b"\xff\xfe\x00a", "not a text file in UTF-8"),
        (gzip.compress(CANONICAL.encode())[:-20], "cannot be unpacked"),
    ],
)
def test_a_file_that_is_no_trace(tmp_path, content, message):
    with pytest.raises(TraceError) as caught:
        read(tmp_path, content)
    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)


JUNK = [
    "",
    "-1",
    "0",
    "null",
    "[]",
    "{}",
    "true",
    '"',
    "x",
    ",",
    "\n",
    "1e999",
    "9" * 30,
    "\x00",
    "é",
    '"a"',
    "1.5",
    "[[1]]",
]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=strategies.data())
def test_a_damaged_file_is_read_or_refused_but_nothing_else(tmp_path, data):
    name = data.draw(strategies.sampled_from(sorted(SAMPLES)))
    tokens = re.findall(r'[-\w."]+|\s|.', SAMPLES[name])
    for _ in range(data.draw(strategies.integers(1, 3))):
        tokens[data.draw(strategies.integers(0, len(tokens) - 1))] = data.draw(strategies.sampled_from(JUNK))
    try:
        trace = read(tmp_path, "".join(tokens))
    except TraceError as problem:
        assert "\n" not in str(problem)  # noqa: PT017 - a refusal is as good as an answer
    else:
        assert all(row.input_tokens >= 1 and row.output_tokens >= 1 and row.arrival_s >= 0 for row in trace.rows)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(TraceError, match=r"nowhere\.csv: cannot be read: No such file"):
        read_trace(tmp_path / "nowhere.csv")
    with pytest.raises(TraceError, match="cannot be read: Is a directory"):
        read_trace(tmp_path)
