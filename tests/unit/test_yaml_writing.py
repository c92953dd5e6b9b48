"""Plain data as YAML."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.yamlfile import parse_yaml, to_yaml

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=8)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=30),
    st.sampled_from(["on", "0.19", "1e5", "~", "null", "2 s", "<<", "?0"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)),
    max_leaves=20,
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=5))
def test_what_is_written_reads_back_as_the_same_data(data):
    assert parse_yaml(to_yaml(data), "file").data == data


def test_short_mappings_stand_on_one_line_and_long_ones_do_not():
    data = {
        "model": "meta-llama/Llama-3.3-70B",
        "slo": {"ttft_p95": "2 s"},
        "engine": {"version": "0.19", "note": "x" * 80},
    }
    assert to_yaml(data) == (
        f"model: meta-llama/Llama-3.3-70B\nslo: {{ttft_p95: 2 s}}\nengine:\n  version: '0.19'\n  note: {'x' * 80}\n"
    )
