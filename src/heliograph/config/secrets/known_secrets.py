"""Values known to be secret in this process, so that a text can be shown without them wherever they ended up.

Known are the values of placeholders in secret keys and in connectors, values of PASSWORD keys, secret options of a
login module, and tokens. `redaction` judges a text by its looks; this module finds a secret in any surroundings.

Callers of REST choose both the values and the texts, so a text is searched once, however many values are known: at each
letter the six letters before it are looked up, and at most `_MOST_WITH_ONE_END` values are compared there.

Invariants:
A. The number of values is bounded, the oldest leave first; literal values, of which a config may have any number, do
   not replace those of placeholders, nor do tokens, which are renewed for ever. The searched text is bounded, too.
B. Values below six letters are not kept: they occur in ordinary words.
C. A reader's own text is not replaced (`public`): the difference would confirm a guessed secret.
D. Every step on shared state is one operation of the interpreter, so threads need no lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    _ByEnd = Mapping[str, list[str]]

_SHORTEST = 6
_LONGEST = 1024  # a longer value is kept in pieces
_LONGEST_TEXT = 50_000  # of what is shown: a log line, a stack trace or an answer
_MOST = 4096
_MOST_TOKENS = 200
_MOST_WITH_ONE_END = 8
_IN_NAMES = frozenset({"password", "secret"})  # as a value they would make names of keys unreadable
HIDDEN = "[hidden]"  # as Kafka shows a secret
PUBLIC_RECORD = "is_public"
"""The attribute of a log record in which nothing is replaced: an audit record, which no caller's secrets may hide."""


class _Span(NamedTuple):
    start: int
    end: int
    value: str


class KnownSecrets:
    """The values of one process, with what is shown in place of each."""

    def __init__(self) -> None:
        self._literal: dict[str, str] = {}
        self._of_placeholders: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        self._revision = object()
        self._index: tuple[object, _ByEnd] = (self._revision, {})

    def __len__(self) -> int:
        return sum(map(len, self._kinds()))

    def add(self, value: str, shown: str) -> None:
        """Keep a value; one that is known keeps what is shown for it."""
        if not any(value in kind for kind in self._kinds()):
            self._keep(self._literal if shown == HIDDEN else self._of_placeholders, _MOST, value, shown)

    def add_token(self, value: str) -> None:
        """Keep a value that another one replaces after some minutes."""
        if not any(value in kind for kind in self._kinds()):
            self._keep(self._tokens, _MOST_TOKENS, value, HIDDEN)

    def shown(self, value: str) -> str:
        """Return the text in place of a value."""
        return self._of_placeholders.get(value, HIDDEN)

    def by_end(self) -> _ByEnd:
        """The values by their last letters, made anew after a change."""
        revision = self._revision  # read first: a value that comes meanwhile makes the index old at once
        if self._index[0] is not revision:
            self._index = (revision, _by_end([value for kind in self._kinds() for value in kind.copy()]))
        return self._index[1]

    def _kinds(self) -> tuple[dict[str, str], ...]:
        return self._literal, self._of_placeholders, self._tokens

    def _keep(self, kind: dict[str, str], most: int, value: str, shown: str) -> None:
        kind[value] = shown
        for oldest in list(kind)[: max(0, len(kind) - most)]:
            kind.pop(oldest, None)
        self._revision = object()


_known = KnownSecrets()


def remember_secret(value: str, shown: str) -> None:
    """Keep a value; from now on `hide_known` shows the other text in its place."""
    for piece in _pieces(value):
        _known.add(piece, shown)


def remember_token(value: str) -> None:
    """Remember a token; tokens have a place of their own."""
    for piece in _pieces(value):
        _known.add_token(piece)


def hide_known(text: str, public: Callable[[], str] | None = None, most: int = _LONGEST_TEXT) -> str:
    """The text with what was written in place of each known value; of a text longer than `most`, its beginning.

    `public` returns what the reader has written himself, in any case of letters.
    """
    end = min(most, len(text))
    spans = list(_spans(text[: end + _LONGEST], _known.by_end()))
    if spans and public is not None:
        own = public().lower()
        said = {span.value for span in _spans(own, _by_end({each.value.lower() for each in spans}))}
        spans = [each for each in spans if each.value.lower() not in said]
    parts: list[str] = []
    done = 0
    for start, end_of_it, value in _merged(spans):
        if start >= end:
            break
        parts += (text[done:start], _known.shown(value))
        done = end_of_it
    parts += (text[done:end], "..." if end < len(text) else "")
    return "".join(parts)


def _pieces(value: str) -> Iterator[str]:
    text = value.strip()
    if text in _IN_NAMES or "${" in text:  # a placeholder names a secret without being one
        return
    for start in range(0, len(text), _LONGEST):
        piece = text[start : start + _LONGEST]
        if len(piece) >= _SHORTEST:
            yield piece


def _by_end(values: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for value in values:
        found.setdefault(value[-_SHORTEST:], []).append(value)
    return {end: ending[-_MOST_WITH_ONE_END:] for end, ending in found.items()}


def _spans(text: str, by_end: _ByEnd) -> Iterator[_Span]:
    """Every place where a value stands in the text."""
    if not by_end:
        return
    for end in [at for at in range(_SHORTEST, len(text) + 1) if text[at - _SHORTEST : at] in by_end]:
        for value in by_end[text[end - _SHORTEST : end]]:
            start = end - len(value)
            if start >= 0 and text.startswith(value, start):
                yield _Span(start, end, value)


def _merged(spans: list[_Span]) -> Iterator[_Span]:
    """Spans that do not overlap: those that did are one, with the longest value of them."""
    current: _Span | None = None
    for span in sorted(spans):
        if current is None or span.start >= current.end:
            if current is not None:
                yield current
            current = span
        else:
            longest = max(current.value, span.value, key=len)
            current = _Span(current.start, max(current.end, span.end), longest)
    if current is not None:
        yield current
