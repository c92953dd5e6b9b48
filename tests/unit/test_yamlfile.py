"""Reading YAML and validating it: plain data, lines, and errors of one line each."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, model_validator

from sim.errors import ConfigError, ProfileError, UserError, did_you_mean
from sim.policy import Policy
from sim.units import Seconds
from sim.yamlfile import Document, parse_yaml, read_yaml, validate


class Poisson(Policy):
    kind: Literal["poisson"] = "poisson"
    rate: float = Field(gt=0, allow_inf_nan=False)


class ClosedLoop(Policy):
    kind: Literal["closed_loop"] = "closed_loop"
    concurrency: int = Field(ge=1)


Arrivals = Annotated[Poisson | ClosedLoop, Field(discriminator="kind")]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Parallelism(Part):
    tp: int = 1
    pp: int = 1


class Toy(Part):
    name: str = ""
    replicas: int = Field(1, ge=1)
    share: float = Field(0.9, gt=0, le=1)
    caching: bool = True
    window: int | Literal["auto"] = "auto"
    timeout: Seconds = 1.0
    weights: Literal["bf16", "fp8"] | None = None
    parallelism: Parallelism = Parallelism()
    arrivals: Arrivals = Poisson(rate=1)
    speed: float = Field(1, ge=1e-6, description="How fast [requests/s]; missing: one.")
    length: int = Field(1, description="How long [tokens].")
    rate_of_bytes: float = Field(1, description="How wide [B/s].")
    more: tuple[Arrivals, ...] = ()
    sweep: dict[str, list[int]] = Field({})
    class_: str = Field("", alias="class")

    @model_validator(mode="after")
    def _names_caching(self) -> "Toy":
        if self.name == "uncached" and self.caching:
            raise ValueError("an uncached toy must switch caching off")
        return self


def toy(text: str) -> Toy:
    return validate(Toy, parse_yaml(text, "toy.yaml"))


def message(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        toy(text)
    return str(caught.value)


def test_yaml_12_scalars_are_plain_python():
    document = parse_yaml(
        "a: 3.35e12\nb: 1e9\nc: on\nd: yes\ne: 0x10\nf: 010\ng: 2024-01-01\nh: ~\ni: .inf\nj: 1_000",
        "x",
    )
    assert document.data == {
        "a": 3.35e12, "b": 1e9, "c": "on", "d": "yes", "e": 16, "f": 10, "g": "2024-01-01", "h": None,
        "i": math.inf, "j": 1000,
    }  # fmt: skip
    assert type(document.data["a"]) is float
    assert type(document.data["e"]) is int


def test_keys_keep_their_spelling():
    assert list(parse_yaml("0.10: a\n0.1: b\ntrue: c\n", "x").data) == ["0.10", "0.1", "true"]


def test_lines_are_of_the_key_or_item_and_fall_back_to_the_nearest_ancestor():
    document = parse_yaml("a: 1\nb:\n  c:\n    - 5\n    - 6\n", "x")
    assert document.line_of(("b", "c", 1)) == 5
    assert document.line_of(("b", "c")) == 3
    assert document.line_of(("b", "missing", "deeper")) == 2
    assert document.line_of(("z",)) == 1


def test_aliases_share_values():
    assert parse_yaml("a: &x {p: 1}\nb: *x\n", "x").data == {"a": {"p": 1}, "b": {"p": 1}}


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path):
    path = tmp_path / "toy.yaml"
    path.write_bytes("\ufeffname: x\r\nreplicas: 3\r\n".encode())
    document = read_yaml(path)
    assert document.data == {"name": "x", "replicas": 3}
    assert document.line_of(("replicas",)) == 2


def test_words_that_yaml_12_leaves_as_text_still_switch_a_flag():
    assert toy("caching: off").caching is False
    assert toy("caching: yes").caching is True
    assert toy("timeout: 50 ms").timeout == pytest.approx(0.05)
    assert toy("class: chat").class_ == "chat"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("replica: 2", "toy.yaml:1: replica: unknown key 'replica' (did you mean 'replicas'?)"),
        ("tp: 2", "toy.yaml:1: tp: unknown key 'tp' (did you mean parallelism.tp?)"),
        ("rate: 2", "toy.yaml:1: rate: unknown key 'rate' (did you mean arrivals.rate?)"),
        ("speed: -2", "toy.yaml:1: speed: expected a number above 0, got -2"),
        ("speed: 1e-7", "toy.yaml:1: speed: expected a number of at least 1e-06, got 1e-07"),
        ("speed: 4/s", "toy.yaml:1: speed: expected a number, got '4/s': it is in requests/s, write 4"),
        ("speed: 240/min", "toy.yaml:1: speed: expected a number, got '240/min': it is in requests/s"),
        ("length: 10 s", "toy.yaml:1: length: expected a whole number, got '10 s': it is in tokens"),
        (
            "length: 10 tokens",
            "toy.yaml:1: length: expected a whole number, got '10 tokens': it is in tokens, write 10",
        ),
        ("rate_of_bytes: 5 s", "toy.yaml:1: rate_of_bytes: expected a number, got '5 s': it is in B/s"),
        ("rate_of_bytes: 5/s", "toy.yaml:1: rate_of_bytes: expected a number, got '5/s': it is in B/s"),
        ("speed: fast", "toy.yaml:1: speed: expected a number, got 'fast'"),
        ("klass: 2", "toy.yaml:1: klass: unknown key 'klass' (did you mean 'class'?)"),
        (
            "name: a\nparallelism: {xyz: 2}",
            "toy.yaml:2: parallelism.xyz: unknown key 'xyz'; choose tp or pp",
        ),
        (
            "arrivals:\n  kind: poisson\n  rte: 2",
            "toy.yaml:3: arrivals.rte: unknown key 'rte' (did you mean 'rate'?)",
        ),
        (
            "more:\n- kind: poisson\n  rate: 1\n- kind: closed_loop\n  concurency: 2",
            "toy.yaml:5: more.1.concurency: unknown key 'concurency' (did you mean 'concurrency'?)",
        ),
        (
            "arrivals: {kind: poison, rate: 2}",
            "toy.yaml:1: arrivals.kind: unknown kind 'poison' (did you mean 'poisson'?); choose poisson or closed_loop",
        ),
        ("arrivals: {rate: 2}", "toy.yaml:1: arrivals: missing key 'kind': choose poisson or closed_loop"),
        (
            "arrivals: poisson",
            "toy.yaml:1: arrivals: expected keys and values, got 'poisson': write {kind: poisson}",
        ),
        ("arrivals: {kind: poisson}", "toy.yaml:1: arrivals: missing key 'rate'"),
        (
            "arrivals:\n  kind: poisson\n  rate: -3",
            "toy.yaml:3: arrivals.rate: expected a number greater than 0, got -3",
        ),
        (
            "arrivals: {kind: poisson, rate: .nan}",
            "toy.yaml:1: arrivals.rate: expected a finite number, got nan",
        ),
        (
            "arrivals: {kind: poisson, rate: .inf}",
            "toy.yaml:1: arrivals.rate: expected a finite number, got inf",
        ),
        ("replicas: 0", "toy.yaml:1: replicas: expected a number of at least 1, got 0"),
        ("share: 1.5", "toy.yaml:1: share: expected a number of at most 1, got 1.5"),
        ("replicas: 2.5", "toy.yaml:1: replicas: expected a whole number, got 2.5"),
        ("replicas: two", "toy.yaml:1: replicas: expected a whole number, got 'two'"),
        ("replicas: true", "toy.yaml:1: replicas: expected a number, got true"),
        (f"replicas: {10**19}", f"toy.yaml:1: replicas: expected a number between 1e-18 and 1e+18, got {10**19}"),
        ("timeout: 1e300 s", "toy.yaml:1: timeout: expected a number between 1e-18 and 1e+18, got '1e300 s'"),
        ("share: 1e-320", "toy.yaml:1: share: expected a number between 1e-18 and 1e+18, got 1e-320"),
        ("sweep:\n  tp: [1, true]", "toy.yaml:2: sweep.tp.1: expected a number, got true"),
        ("share: [1]", "toy.yaml:1: share: expected a number, got a list"),
        ("share:", "toy.yaml:1: share: expected a number, got nothing"),
        ("caching: perhaps", "toy.yaml:1: caching: expected true or false, got 'perhaps'"),
        ("name: 0.19", "toy.yaml:1: name: expected text, got 0.19: put it in quotes"),
        ("window: wide", "toy.yaml:1: window: expected a whole number or 'auto', got 'wide'"),
        (
            "weights: fp9",
            "toy.yaml:1: weights: unknown value 'fp9' (did you mean 'fp8'?); choose bf16 or fp8",
        ),
        ("more: 3", "toy.yaml:1: more: expected a list, got 3"),
        ("parallelism: 3", "toy.yaml:1: parallelism: expected keys and values, got 3"),
        ("sweep: [1]", "toy.yaml:1: sweep: expected keys and values, got a list"),
        ("sweep: {tp: [1, x]}", "toy.yaml:1: sweep.tp.1: expected a whole number, got 'x'"),
        (
            "timeout: 3 ly",
            "toy.yaml:1: timeout: '3 ly' is not a number of seconds: write a number and one of us, ms, s, min, h, d",
        ),
        ("replicas: 1\nname: uncached", "toy.yaml:1: an uncached toy must switch caching off"),
        ("replicas: 0\nshare: 3\nreplica: x", "toy.yaml:3: replica: unknown key 'replica' (did you mean 'replicas'?)"),
        ("share: 3\nreplicas: 0", "toy.yaml:1: share: expected a number of at most 1, got 3"),
    ],
)
def test_validation_errors_are_one_line_that_says_where_and_what_else(text: str, expected: str):
    assert message(text) == expected


def test_a_long_value_is_cut():
    assert len(message(f"replicas: {'x' * 500}")) < 130


LAUGHS = "\n".join(f"{name}: &{name} [{', '.join([f'*{below}'] * 10)}]" for below, name in pairwise("abcdef"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "toy.yaml: is empty"),
        ("# nothing\n", "toy.yaml: is empty"),
        ("- 1\n- 2", "toy.yaml:1: expected keys and values, got a list"),
        ("just words", "toy.yaml:1: expected keys and values, got 'just words'"),
        ("a: 1\nb:\n\t- 2", "toy.yaml:3: a tab where YAML allows only spaces"),
        ("a: 1\nb: 2\na: 3", "toy.yaml:3: a: key 'a' is there twice, first in line 1"),
        ("a: {b: 1, b: 2}", "toy.yaml:1: a.b: key 'b' is there twice, first in line 1"),
        ("a:\n  b: !!python/object/apply:os.system [ls]",
         "toy.yaml:2: a.b: the tag '!!python/object/apply:os.system' is not allowed"),
        ("a: !own 3", "toy.yaml:1: a: the tag '!own' is not allowed"),
        ("a: !!binary aGk=", "toy.yaml:1: a: the tag '!!binary' is not allowed"),
        ("a: !!int x", "toy.yaml:1: a: cannot read 'x'"),
        (f"a: {'9' * 5000}", f"toy.yaml:1: a: cannot read '{'9' * 40}'"),
        ("? [a]\n: 3", "toy.yaml:1: a key must be a single word or number"),
        ("a: 1\n---\nb: 2",
         "toy.yaml:2: is not YAML: expected a single document in the stream, but found another document"),
        ("a: [1, 2",
         "toy.yaml:1: is not YAML: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'"),
        ("a: 1\nb: c: d", "toy.yaml:2: is not YAML: mapping values are not allowed here"),
        ("a: *b", "toy.yaml:1: is not YAML: found undefined alias 'b'"),
        ("a: \x01",
         "toy.yaml: is not YAML: unacceptable character #x0001: special characters are not allowed"),
        (f"a: {'[' * 60}{']' * 60}", "toy.yaml:1: is nested deeper than 50 levels"),
        (f"a: {'[' * 3000}{']' * 3000}", "toy.yaml: is nested deeper than 50 levels"),
        ("a: &x [*x]", "toy.yaml:1: is nested deeper than 50 levels"),
        (f"a: &a [{', '.join('1' * 10)}]\n{LAUGHS}",
         "toy.yaml:1: holds more than 100,000 values, aliases expanded"),
    ],
)  # fmt: skip
def test_what_is_no_usable_yaml_is_one_line(text: str, expected: str):
    assert message(text) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a: 1\nb: \xff\xfe", ":2: is not UTF-8 text"),
        ("a: 1".encode("utf-16"), ":1: is not UTF-8 text"),
        (b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00}\x94\x8c\x01a\x94K\x01s.", ":1: is not UTF-8 text"),
        (b"x: 1\n" * 300_000, ": is larger than 1 MiB: no experiment or profile"),
    ],
    ids=["bytes", "utf-16", "pickle", "large"],
)
def test_bytes_that_are_no_text(tmp_path: Path, content: bytes, expected: str):
    path = tmp_path / "junk.yaml"
    path.write_bytes(content)
    with pytest.raises(ProfileError) as caught:
        read_yaml(path, ProfileError)
    assert str(caught.value) == f"{path}{expected}"


def test_a_missing_file_offers_its_neighbours_and_a_folder_is_refused(tmp_path: Path):
    (tmp_path / "experiment.yaml").write_text("a: 1")
    with pytest.raises(ConfigError, match=r"expriment\.yaml: no such file \(did you mean 'experiment\.yaml'\?\)$"):
        read_yaml(tmp_path / "expriment.yaml")
    with pytest.raises(ConfigError, match=r": cannot be read: Is a directory$"):
        read_yaml(tmp_path)
    with pytest.raises(ConfigError, match=r": cannot be read: embedded null byte$"):
        read_yaml("a\0b")


@settings(deadline=None)
@given(st.text(alphabet="abk:-[]{},&*!#|>'\"%@?~ \n\t01.eE\\\x00\u2028", max_size=60))
def test_any_text_is_read_or_refused_in_one_line(text: str):
    problem = ""
    try:
        parse_yaml(text, "toy.yaml")
    except UserError as caught:
        problem = str(caught)
    assert len(problem.splitlines()) <= 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.sampled_from(["poisson", "auto", "", "1 s"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*Toy.model_fields, "kind", "rate", "tp", "class"]), inner, max_size=3)
    ),
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from([*Toy.model_fields, "class"]), VALUES, max_size=4))
def test_any_data_is_taken_or_refused_in_one_line(data: dict[str, Any]):
    problem = ""
    try:
        validate(Toy, Document(data, "toy.yaml", ConfigError, {}))
    except UserError as caught:
        problem = str(caught)
    assert len(problem.splitlines()) <= 1


BASE = parse_yaml("replicas: 2\narrivals: {kind: poisson, rate: 2}\nmore:\n- {kind: poisson, rate: 1}\n", "toy.yaml")


@pytest.mark.parametrize(
    ("assignment", "path", "expected"),
    [
        ("replicas=3", ("replicas",), 3),
        ("arrivals.rate=2.5e-1", ("arrivals", "rate"), 0.25),
        ("parallelism.tp=4", ("parallelism", "tp"), 4),
        ("more.0.rate=7", ("more", 0, "rate"), 7),
        ("sweep.tp=[1, 2]", ("sweep", "tp"), [1, 2]),
        ("name= two words ", ("name",), "two words"),
        ("name=a=b", ("name",), "a=b"),
        ("weights=", ("weights",), None),
    ],
)
def test_overrides_write_yaml_values_at_dotted_paths(assignment: str, path: tuple[str | int, ...], expected: Any):
    document = BASE.override(assignment)
    value: Any = document.data
    for step in path:
        value = value[step]
    assert value == expected
    assert document.place_of(path) == (f"--set {assignment.split('=')[0]}", None)
    assert BASE.data["replicas"] == 2, "the original is untouched"


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("replicas=0", "--set replicas: expected a number of at least 1, got 0"),
        ("arrivals.rte=1", "--set arrivals.rte: unknown key 'rte' (did you mean 'rate'?)"),
        (
            "paralellism.tp=2",
            "--set paralellism.tp: paralellism: unknown key 'paralellism' "
            + did_you_mean("paralellism", Toy.model_fields).lstrip(),
        ),
        ("arrivals={kind: poisson, rate: x}", "--set arrivals: arrivals.rate: expected a number, got 'x'"),
        ("replicas.x=1", "toy.yaml:1: replicas: cannot set 'x' inside of 2"),
        ("more.5.rate=1", "toy.yaml:3: more: no item '5' in a list of 1"),
        ("more.x=1", "toy.yaml:3: more: no item 'x' in a list of 1"),
        ("replicas", "--set: 'replicas' is no assignment: write key.path=value"),
        ("=3", "--set: '=3' is no assignment: write key.path=value"),
        ("a..b=3", "--set: 'a..b=3' is no assignment: write key.path=value"),
        ("name=a: b: c", "--set name: is not YAML: mapping values are not allowed here"),
        (
            "name=!!python/name:os.system",
            "--set name: the tag '!!python/name:os.system' is not allowed",
        ),
    ],
)
def test_bad_overrides_name_the_option(assignment: str, expected: str):
    with pytest.raises(UserError) as caught:
        validate(Toy, BASE.override(assignment))
    assert str(caught.value) == expected


def test_replace_puts_a_value_in_place_of_all_that_was_below():
    document = BASE.replace("arrivals", {"kind": "closed_loop", "concurrency": 0}, "sweep arrivals")
    with pytest.raises(ConfigError) as caught:
        validate(Toy, document)
    assert str(caught.value) == "sweep arrivals: arrivals.concurrency: expected a number of at least 1, got 0"
