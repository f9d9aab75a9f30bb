"""Random patterns against a real Java: whatever we take, Java takes, and both match the same names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heliograph.config.syntax.java_regex import compile_java
from heliograph.config.syntax.java_translation import JavaRegexError
from tests.support.java.java_patterns import NAMES, java_patterns

PIECES = st.sampled_from(
    [
        *("a", "b", "B", "-", ".", "_", "1", "é", "&", "^", "$", "|", "#", " ", "]", "}", "\\\\", r"\.", r"\-", "a-c"),
        *("(", ")", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?<n>", "(?i)", "(?-i)", "(?s)", "(?i:", "(?iu)"),
        *("*", "+", "?", "*+", "*?", "{2}", "{1,2}", "[", "[^", "&&", "[a-c]", "[a-z&&[^b]]", "(a)", "(b|c)"),
        *(
            r"\w",
            r"\d",
            r"\s",
            r"\W",
            r"\D",
            r"\S",
            r"\h",
            r"\H",
            r"\v",
            r"\R",
            r"\A",
            r"\z",
            r"\Z",
            r"\G",
            r"\Q",
            r"\E",
        ),
        *(r"\1", r"\k<n>", r"\x41", r"\x{61}", r"\u0062", r"\0101", r"\t", r"\ca", r"\p{Alpha}", r"\p{L}", r"\P{Lu}"),
        *(r"\p{Punct}", r"\p{IsAlphabetic}", r"\p{gc=Nd}", r"\p{IsLatin}", r"\q"),
    ]
)
patterns = st.lists(PIECES, min_size=1, max_size=7).map("".join)


@pytest.fixture(scope="module")
def compile_in_java() -> Iterator[Callable[[str], Any]]:
    with java_patterns() as compile_pattern:
        yield compile_pattern


@settings(max_examples=400)
@given(pattern=patterns, names=st.lists(st.sampled_from(NAMES), min_size=6, max_size=6, unique=True))
def test_what_we_take_matches_as_in_java(compile_in_java: Callable[[str], Any], pattern: str, names: list[str]) -> None:
    try:
        matcher = compile_java(pattern)._matcher
    except JavaRegexError:
        return
    theirs = compile_in_java(pattern)
    assert theirs is not None, "Java refuses it"
    verdicts = [theirs.matcher(name).matches() for name in names]
    for engine in (matcher, matcher._backtracking):  # RE2 where it can, and `regex` for everything
        assert [bool(engine.fullmatch(name)) for name in names] == verdicts


@given(st.text(st.sampled_from("abcXYZ019._-"), min_size=1, max_size=20))
def test_every_name_of_a_topic_is_a_pattern_that_matches_it(name: str) -> None:
    assert compile_java(name).fullmatch(name)


@given(patterns)
def test_a_refusal_names_a_place_of_the_pattern(pattern: str) -> None:
    try:
        compile_java(pattern)
    except JavaRegexError as error:
        place = re.match(r"at character (\d+), ", str(error))
        if place is None:
            assert str(error).startswith("Python cannot match it")
        else:
            assert 1 <= int(place[1]) <= len(pattern)
