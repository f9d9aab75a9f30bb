"""No pattern takes long: to read, to match one name, or to match all names of a cluster."""

from __future__ import annotations

import logging
import re
import time

import pytest
import re2
import regex

from heliograph.config.input_limits import is_group_name, is_topic_name, unusable_sentence
from heliograph.config.resolve.settings import Settings
from heliograph.config.syntax import java_regex
from heliograph.config.syntax.java_regex import PatternLimitError, compile_java
from heliograph.config.syntax.java_translation import JavaRegexError
from heliograph.driver.steps import matching_time
from heliograph.driver.steps.matching_time import within_matching_time
from heliograph.errors import ConfigError
from heliograph.mirror.policy.filters import topic_filter
from heliograph.mirror.policy.rename_map import parse_rename_map
from heliograph.web.access.access_rules import parse_rules

HOSTILE = "a" * 249
SLOW = "(?=a)(?:a|aa)+$x"  # Java needs hours for it too


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|aa)+b",
        "(a|a)*b",
        "(.*)*b",
        "(a*)*b",
        "(?:a?){200}a{200}b",
        "(.*a){20}b",
        "(?i)(A+)+B",
        "((a+)+)+$b",
    ],
)
def test_what_blows_up_elsewhere_is_matched_in_linear_time(pattern: str) -> None:
    compiled = compile_java(pattern)
    began = time.thread_time()
    assert compiled.fullmatch("a" * 30_000) is None
    assert time.thread_time() - began < 5.0


@pytest.mark.parametrize("pattern", [SLOW, r"(a|aa)+\1{3}[^a]", "(?>(?:a|aa)+b)", "(?:a|aa)+(?<!b)$x"])
def test_what_must_backtrack_does_so_up_to_a_limit(pattern: str) -> None:
    compiled = compile_java(pattern, f"topics: '{pattern}'")
    began = time.thread_time()
    with pytest.raises(PatternLimitError) as raised:
        compiled.fullmatch(HOSTILE)
    assert time.thread_time() - began < 5.0
    assert str(raised.value).startswith(f"topics: '{pattern}' takes too long to match the name 'aaa")


def test_a_pattern_that_looks_around_matches_sensible_names() -> None:
    compiled = compile_java(r"(?!.*\.internal$)(?=.*orders).*[a-z]+(?<!-raw)")
    names = [f"team-{n}.orders-{'x' * 180}.eu" for n in range(1_000)]
    assert all(compiled.fullmatch(name) for name in names)
    assert not any(compiled.fullmatch(f"{name}.internal") for name in names)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("((a{1000}){1000}){1000}", "larger than"),
        ("(?=b)((a{0,1000}){0,1000}){0,1000}", "larger than"),
        ("a{999999999}", "larger than"),
        ("(" * 50_000, "nested"),
        ("[" * 50_000, "nested"),
        ("(?:" * 200 + "a" + ")" * 200, "nested"),
        (r"\p{L}" * 20_000, "larger than"),
        (r"[\p{L}" + r"\P{Lu}" * 15_000 + "]", "larger than"),
        ("(?iu)" + "[a-\uffff]" * 15_000, "larger than"),
        ("a" * 100_001, "100001 characters"),
        ("a{" + "9" * 90_000 + "}", "begins no count"),
        (r"\Q\E" * 24_000 + "[", "not closed"),
        (r"\p{" * 30_000, "not supported"),
    ],
)
def test_a_pattern_that_would_become_large_is_refused_at_once(pattern: str, words: str) -> None:
    began = time.thread_time()
    with pytest.raises(JavaRegexError, match=words):
        compile_java(pattern)
    assert time.thread_time() - began < 10.0


def test_long_lists_and_large_counts_that_people_write_are_taken() -> None:
    names = [f"orders-{n}.eu-west" for n in range(4_000)]
    compiled = compile_java("|".join(names))
    assert compiled.fullmatch(names[-1])
    assert not compiled.fullmatch("orders-4000.eu-west")
    assert compile_java("[a-z]{1,249}").fullmatch("a" * 249)
    assert compile_java("a{2000}").fullmatch("a" * 2_000)
    assert not compile_java("a{2000}").fullmatch("a" * 1_999)
    assert compile_java("(" * 90 + "a" + ")" * 90).fullmatch("a")


def test_only_so_many_patterns_are_kept() -> None:
    for number in range(1_000):
        compile_java(f"x{number}")
    kept = java_regex._kept_matcher.cache_info().misses
    compile_java("y" * 1_001)
    assert java_regex._kept_matcher.cache_info().misses == kept
    assert java_regex._kept_matcher.cache_info().currsize == java_regex._KEPT_PATTERNS


def test_no_engine_keeps_patterns_on_its_own() -> None:
    for pattern in ("long" * 1_000, "(?=a)" + "long" * 1_000, "(?<=b)" + "long" * 1_000):
        kept = len(regex._main._cache)
        assert compile_java(pattern).fullmatch("x") is None
        assert re2._Regexp._make.cache_info().currsize == 0
        assert len(regex._main._cache) == kept
        assert not any(pattern in str(key) for key in re._cache)  # type: ignore[attr-defined]


def test_a_filter_names_its_key_and_what_a_placeholder_was_written_as() -> None:
    with pytest.raises(ConfigError, match=r"^topics: '\(\?=a\)\(\?:a\|aa\)\+\$x' takes too long"):
        topic_filter(Settings({"topics": SLOW})).accepts(HOSTILE)
    with pytest.raises(ConfigError, match=r"^topics: '\$\{env:T\}' takes too long") as raised:
        topic_filter(Settings({"topics": SLOW}, raw={"topics": "${env:T}"})).accepts(HOSTILE)
    assert "aa)+" not in str(raised.value)


def test_a_rule_that_cannot_be_decided_gives_nothing(caplog: pytest.LogCaptureFixture) -> None:
    rules = parse_rules(f"- users: [u]\n  change: ['{SLOW}', 'b.*']", "rules.yml")
    (permissions,) = (each[0] for each in rules._by_principal.values())
    with caplog.at_level(logging.WARNING):
        assert not permissions.may_change(HOSTILE)
    assert "takes too long" in caplog.text
    assert permissions.may_change("bc")


def test_thousands_of_groups_do_not_make_a_pattern_slow() -> None:
    """RE2 took 17 s for this name; nothing here asks for the texts of so many groups."""
    pattern = compile_java("(a)?(b)?" * 4_000)
    begin = time.process_time()
    assert pattern.fullmatch("ab" * 100 + "c") is None
    assert pattern.fullmatch("ab" * 100) is not None
    assert time.process_time() - begin < 5
    few = compile_java("(a)(b)?").fullmatch("ab")
    assert few is not None
    assert few[2] == "b"


def test_a_rule_of_renaming_has_as_many_groups_as_are_kept() -> None:
    def rule(count: int) -> str:
        left = "-".join(f"(?<n{number}>.)" for number in range(count))
        return f"{left}x={'-'.join(f'${{n{number}}}' for number in range(count))}y"

    assert parse_rename_map("rename", [rule(100)]).forward("-".join("a" * 100) + "x") == "-".join("a" * 100) + "y"
    with pytest.raises(ConfigError, match="101 groups"):
        parse_rename_map("rename", [rule(101)])


def test_reading_a_name_backwards_ends() -> None:
    rename = parse_rename_map("rename", ["(.*)-(.*)-(.*)-(.*)-(.*)x=$5-$4-$3-$2-$1y"])
    assert rename.backward("a-b-c-d-ey") == "e-d-c-b-ax"
    with pytest.raises(PatternLimitError, match=r"^rename: "):
        rename.backward("-" * 248 + "z")


def test_the_names_of_a_cluster_share_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(within_matching_time(("a", "b"), "topics", "A")) == ["a", "b"]
    monkeypatch.setattr(matching_time, "_MOST_S", 0.2)
    chosen = compile_java("(?=a)(?:a|aa)+b")
    names = ("a" * 21 for _ in range(100_000))  # each a little below its own limit
    with pytest.raises(PatternLimitError, match=r"topics, topics.exclude: the patterns take more than"):
        [chosen.fullmatch(name) for name in within_matching_time(names, "topics, topics.exclude", "A")]


@pytest.mark.parametrize("name", ["a", "a" * 249, "A.b_c-9", "...", "__consumer_offsets"])
def test_names_of_topics(name: str) -> None:
    assert is_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a b", "é", "a\n", "a/b", "\0", "a" * 1_000_000])
def test_no_names_of_topics(name: str) -> None:
    assert not is_topic_name(name)


def test_names_of_groups() -> None:
    assert all(map(is_group_name, ["a", "Team A: orders/payments (eu) #1", "é", "a" * 1_024, "."]))
    assert not any(map(is_group_name, ["", "a" * 1_025, "a\nb", "\x1b[2J", "a\u2028"]))


def test_what_is_left_out_is_reported_in_one_sentence_that_nobody_can_break() -> None:
    assert unusable_sentence("A", "topics", ()) == ()
    (sentence,) = unusable_sentence("A", "topics", ["\nINFO all is well" + "x" * 1_000, "b c", "é"])
    assert sentence == (
        "'A' lists topics with invalid names; they are left out:"
        " '\\nINFO all is wellxxxxxxxxxxxxxxxxxxxxxxx...' and 2 more"
    )
