"""Whatever is typed, a command is read or refused by name; and what was read is written so that it reads the same."""

import string
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog.flags import Flag, flags, options
from planner.core.engine import EngineArgs, Version
from planner.core.errors import BadInput
from planner.readers.command import format_command, given_fields, read_command, read_fields

VERSIONS = [Version(0, 8, 5), Version(0, 11, 2), Version(0, 19), Version(0, 32), Version(0, 33)]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(
    lambda word: word != "None" and word.strip() == word and not word.startswith("-")
)
NAMES = st.text(string.ascii_letters + string.digits + "/._-", min_size=1, max_size=30).filter(
    lambda name: not name.startswith("-") and name.lower() not in {"true", "false"}
)
EDGES = [
    "-1",
    "auto",
    "40k",
    "1.5K",
    "{}",
    "{",
    '{"a":1e999}',
    "nan",
    "9" * 50,
    "None",
    "'",
    "\\",
    "--",
    "=",
    "é",
    "\0",
]


def values_of(flag: Flag, version: Version) -> st.SearchStrategy[Any]:
    """Return values that the flag takes in this release, in the form that arguments keep."""
    least, most = flag.minimum or 0, flag.maximum or 10**12
    if flag.choices_in(version):
        chosen = st.sampled_from(flag.choices_in(version))
        return chosen.map(int) if flag.kind == "int" else chosen
    by_kind: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans() if flag.no_form.holds(version) else st.just(True),
        "switch": st.just(True),
        "int": st.integers(least, most),
        "size": st.integers(least, most),
        "length": st.integers(1, 10**9) | (st.just("auto") if version >= Version(0, 14) else st.nothing()),
        "level": st.integers(0, 3),
        "float": st.floats(least, min(most, 10**9), allow_nan=False).map(abs),
        "json": st.dictionaries(st.text(max_size=4), JSON, max_size=3) | st.lists(JSON, max_size=2),
        "json_or_str": st.dictionaries(st.text(max_size=4), JSON, max_size=2) | WORDS,
        "optional_str": WORDS | st.just(True),
        "list": st.lists(st.integers(1, 2000) if flag.item_kind != "str" else WORDS, min_size=1, max_size=4),
        "append": st.lists(WORDS, min_size=1, max_size=3),
    }
    return by_kind.get(flag.kind, WORDS)


@st.composite
def arguments(draw: st.DrawFn) -> tuple[EngineArgs, Version]:
    version = draw(st.sampled_from(VERSIONS))
    living = sorted(
        name for name, flag in flags().items() if flag.lives.holds(version) and name not in {"model", "config"}
    )
    names = draw(st.lists(st.sampled_from(living), max_size=6, unique=True))
    given_values = {name: draw(values_of(flags()[name], version)) for name in names}
    environment = draw(
        st.dictionaries(st.sampled_from(["VLLM_USE_V1", "CUDA_VISIBLE_DEVICES"]), WORDS.filter(lambda w: "$" not in w))
    )
    return read_fields(given_values, version=version, model=draw(NAMES), environment=environment), version


@settings(max_examples=150, deadline=None)
@given(arguments())
def test_what_is_written_reads_the_same(case):
    args, version = case
    assert read_command(format_command(args), version=version) == args


@settings(max_examples=150, deadline=None)
@given(arguments())
def test_the_given_fields_read_the_same(case):
    args, version = case
    again = read_fields(given_fields(args), version=version, model=args.model, environment=dict(args.environment))
    assert again == args


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200) | st.text(max_size=200).map("vllm serve m ".__add__), st.sampled_from(VERSIONS))
def test_any_text_is_read_or_refused_as_bad_input(text, version):
    with suppress(BadInput):  # any other error fails the test
        read_command(text, version=version)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(VERSIONS))
def test_any_words_after_real_flags_are_read_or_refused_as_bad_input(data, version):
    spellings = st.sampled_from([*sorted(options(version)), "-O3", "-O", "-cc.a+", "--compilation-config.b", "-qx"])
    word = spellings | st.sampled_from(EDGES) | st.text(max_size=20)
    words = data.draw(st.lists(word | st.tuples(spellings, word).map("=".join), max_size=8))
    with suppress(BadInput):  # any other error fails the test
        read_command(["vllm", "serve", "m", *words], version=version)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(flags())) | st.text(max_size=12), JSON, max_size=5),
    st.sampled_from(VERSIONS),
)
def test_any_json_object_is_read_or_refused_as_bad_input(fields, version):
    with suppress(BadInput):  # any other error fails the test
        read_fields(fields, version=version, model="m")
