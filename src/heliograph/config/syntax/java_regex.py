"""Java regular expressions (`java.util.regex`), so that a pattern of an MM2 file keeps its meaning.

Only whole names are matched (`Pattern.matches`). Patterns come from callers of the REST API and names from foreign
clusters, so no pair of them may block the worker. A pattern is translated for RE2, which matches in linear time. One
with look-around, back-references, atomic groups or possessive quantifiers is beyond RE2 and goes to `regex`, which
backtracks, without the interpreter lock and up to a limit: then `PatternLimitError`. `java_translation` translates, and
limits its input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

import re2
import regex

from heliograph.config.syntax.java_translation import OF_RE2, OF_REGEX, JavaRegexError, Translated, translated_for
from heliograph.errors import ConfigError

__all__ = ["JavaPattern", "JavaRegexError", "PatternLimitError", "compile_java"]

LONGEST_PATTERN = 100_000  # characters: a list of some 3,000 names
# RE2 takes time in step with the square of the groups whose texts it keeps: 17 s for one name and 8,000 groups.
MOST_GROUPS = 100
"""Groups of a pattern whose texts can be asked for; of one with more, no match has any."""
_KEPT_PATTERNS = 32
_LONGEST_KEPT = 1_000  # RE2 may take megabytes for a long one; its filter keeps it
# For one name, of the processor time of the whole process: other threads use it up too. `regex` looks at the clock
# every 65,536 steps; a sensible pattern needs as many only if thousands of names stand beside it in one list.
_MOST_S_PER_NAME = 0.1
_LONGEST_SHOWN = 200
_LINE_ENDS = frozenset("\n\r\x85\u2028\u2029")


class PatternLimitError(ConfigError):
    """A pattern that needs more time for a name than one may take: the name, the pattern and its key are in it."""


class NameMatch(Protocol):
    """The result of a match: its groups by number."""

    def __getitem__(self, group: int) -> str:
        """The text of a group."""


class _Engine(Protocol):
    def fullmatch(self, text: str) -> NameMatch | None: ...


@dataclass(frozen=True, slots=True)
class JavaPattern:
    """A Java pattern that matches whole names within a limit of time; `shown` is what a message calls it."""

    pattern: str
    groups: int
    shown: str = field(compare=False)
    _matcher: _Matcher = field(compare=False, repr=False)

    def fullmatch(self, name: str) -> NameMatch | None:
        """The match of the whole name, or None; raises PatternLimitError."""
        try:
            return self._matcher.fullmatch(name)
        except TimeoutError:
            raise limit_error(self.shown, name) from None


def shortened(text: str) -> str:
    """A pattern or a name, fit for a sentence."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def limit_error(shown: str, name: str) -> PatternLimitError:
    """The refusal to match a name any longer; `shown` names the key and the pattern."""
    return PatternLimitError(
        f"{shown} takes too long to match the name {shortened(name)!r} of {len(name)} characters; write it without"
        " repetitions inside of repetitions, or without look-around, back-references and possessive quantifiers."
    )


def compile_java(pattern: str, shown: str = "") -> JavaPattern:
    """The pattern, ready to match; raises JavaRegexError. `shown` is for messages, with the key it stands under."""
    matcher = _kept_matcher(pattern) if len(pattern) <= _LONGEST_KEPT else _matcher(pattern)
    return JavaPattern(pattern, matcher.groups, shown or f"'{shortened(pattern)}'", matcher)


def _matcher(pattern: str) -> _Matcher:
    if len(pattern) > LONGEST_PATTERN:
        raise JavaRegexError(f"it has {len(pattern)} characters; the limit is {LONGEST_PATTERN}")
    return _Matcher(pattern)


_kept_matcher = lru_cache(maxsize=_KEPT_PATTERNS)(_matcher)


class _Matcher:
    """Both ways to match one pattern; that of `regex` is prepared where it is needed."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._linear: _Engine | None = None
        translated = translated_for(pattern, OF_RE2)
        self.groups = translated.groups
        self._has_end = translated.has_end
        if not translated.is_beyond_re2:
            self._linear = _in_re2(translated)
        if self._linear is None:
            self._backtracking  # noqa: B018  (a pattern that cannot be used is refused when it is read)

    def fullmatch(self, name: str) -> NameMatch | None:
        # RE2 has no `$` that also stands before a line's end: where a name has none, it is the end.
        if self._linear is None or (self._has_end and name[-1:] in _LINE_ENDS):
            return self._backtracking.fullmatch(name)
        try:
            return self._linear.fullmatch(name)
        except UnicodeEncodeError:  # half a surrogate pair is no character to RE2
            return self._backtracking.fullmatch(name)

    @cached_property
    def _backtracking(self) -> _Engine:
        return _in_regex(translated_for(self._pattern, OF_REGEX))


class _Limited(NamedTuple):
    """A pattern of `regex`, with the limit for each name."""

    pattern: regex.Pattern[str]

    def fullmatch(self, text: str) -> NameMatch | None:
        found: NameMatch | None = self.pattern.fullmatch(text, timeout=_MOST_S_PER_NAME, concurrent=True)
        return found


def _in_re2(translated: Translated) -> _Engine | None:
    """None where RE2 would need more memory than it may have, or counts further than it does."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = translated.groups > MOST_GROUPS
    try:
        compiled: _Engine = re2.compile(translated.text, options)
    except (re2.error, UnicodeEncodeError):
        return None
    finally:
        re2.purge()  # it keeps 128 patterns of any length
    return compiled


def _in_regex(translated: Translated) -> _Engine:
    flags = 0 if translated.has_unicode_references else regex.ASCII
    try:
        if translated.looks_behind:  # Java takes what has a greatest length, `re` one length, `regex` any
            re.compile(translated.text)
            re.purge()  # it keeps 512 patterns of any length
        return _Limited(regex.compile(translated.text, flags, cache_pattern=False))
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        raise JavaRegexError(f"Python cannot match it ({getattr(error, 'msg', error)})") from None
