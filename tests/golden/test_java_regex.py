"""Verdicts of real `java.util.regex.Pattern.matches` (OpenJDK 17), written by `tests/support/java/java_patterns.py`.

A pattern maps to the names it matches, or to null where Java refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from heliograph.config.syntax import java_regex
from heliograph.config.syntax.java_regex import compile_java
from heliograph.config.syntax.java_translation import JavaRegexError
from tests.support.java.java_patterns import GOLDEN, NAMES, PATTERNS

VERDICTS: dict[str, list[str] | None] = json.loads(GOLDEN.read_text())

# Java takes these; we do not, and say so.
REFUSED = {
    "[&&a]": "nothing on one side of &&",
    "[a&&]": "nothing on one side of &&",
    "{a}": "begins no count",
    r"\1(a)": "refers to a group that is not complete",
    "(?m)^a$": "the flag 'm' is not supported",
}


@pytest.fixture(params=["RE2 where it can", "regex only"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param == "regex only":
        monkeypatch.setattr(java_regex, "_in_re2", lambda _text: None)
    java_regex._kept_matcher.cache_clear()
    yield
    java_regex._kept_matcher.cache_clear()


def test_the_golden_file_is_of_these_patterns() -> None:
    assert tuple(VERDICTS) == PATTERNS


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_java_matches(pattern: str) -> None:
    expected = VERDICTS[pattern]
    if expected is None or pattern in REFUSED:
        with pytest.raises(JavaRegexError, match=REFUSED.get(pattern, ".")):
            compile_java(pattern)
        return
    ours = compile_java(pattern)
    assert [name for name in NAMES if ours.fullmatch(name)] == expected


def test_only_what_is_beyond_re2_backtracks() -> None:
    needs = ("(?=", "(?!", "(?<=", "(?<!", "(?>", "++", "*+", "{2}+", r"\1", r"\k<")
    taken = [pattern for pattern in PATTERNS if VERDICTS[pattern] is not None and pattern not in REFUSED]
    backtracking = [pattern for pattern in taken if compile_java(pattern)._matcher._linear is None]
    assert [pattern for pattern in taken if any(sign in pattern for sign in needs)] == backtracking


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("x[", "at character 2, a '[' is not closed"),
        ("[a[b]", "at character 1, a '[' is not closed"),
        ("a|(b", "at character 3, a '(' is not closed"),
        ("ab)", "at character 3, a ')' has no '(' before it"),
        ("*", "at character 1, a '*' has nothing before it to repeat"),
        ("a{", "at character 2, a '{' begins no count"),
        ("ab\\", "at character 3, a backslash has nothing after it"),
        (r"\Qa.[b\Ec[", "at character 10, a '[' is not closed"),
        ("a[z-b]", "at character 3, the range z-b in a character class runs backwards"),
        ("a{3,2}", "at character 2, {3,2} counts down"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_where(pattern: str, words: str) -> None:
    with pytest.raises(JavaRegexError) as reported:
        compile_java(pattern)
    assert str(reported.value).startswith(words)
