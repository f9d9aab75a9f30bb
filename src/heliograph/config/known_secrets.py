"""Values known to be secret in this process, so that a text can be shown without them wherever they ended up.

Known are what placeholders of secrets and of connectors stood for, values of PASSWORD keys, secret options of a login
module, and tokens. `redaction` judges a text by its looks; this module finds a secret whatever stands around it.

Invariants: the number and the length of values are bounded, as is the text they are looked for in: callers of REST
choose all three, and a text is searched once for each value. The oldest values leave first; tokens, which are renewed
for ever, have places of their own. Values below six letters are not kept: they occur in ordinary words. Every step on a
dictionary is one operation of the interpreter, so threads need no lock.
"""

from __future__ import annotations

_SHORTEST = 6
_LONGEST = 16 << 10  # a private key has some 3,000 characters
_LONGEST_TEXT = 50_000  # of what is shown: a log line, a stack trace or an answer
_MOST = 2_000
_MOST_TOKENS = 200
_IN_NAMES = frozenset({"password", "secret"})  # as a value they would make names of keys unreadable
_known: dict[str, str] = {}
_tokens: dict[str, str] = {}


def remember_secret(value: str, shown: str) -> None:
    """Keep a value; from now on `hide_known` shows the other text in its place."""
    _remember(_known, _MOST, value, shown)


def remember_token(value: str, shown: str) -> None:
    """The same for a value that another one replaces after some minutes."""
    _remember(_tokens, _MOST_TOKENS, value, shown)


def _remember(values: dict[str, str], most: int, value: str, shown: str) -> None:
    text = value.strip()
    if not _SHORTEST <= len(text) <= _LONGEST or text in _IN_NAMES:
        return
    if "${" in text:  # a placeholder names a secret without being one
        return
    values.setdefault(text, shown)
    if len(values) > most:
        for oldest in list(values)[:-most]:
            values.pop(oldest, None)


def hide_known(text: str) -> str:
    """The text with what was written in place of each known value; the end of a very long text is left out."""
    is_whole = len(text) <= _LONGEST_TEXT
    part = text if is_whole else text[: _LONGEST_TEXT + _LONGEST]
    found = [(value, shown) for value, shown in (*_known.items(), *_tokens.items()) if value in part]
    for value, shown in sorted(found, key=lambda each: -len(each[0])):  # a part of a secret must not spoil the whole
        part = part.replace(value, shown)
    # Where the text was cut, the beginning of a secret may be left.
    return part if is_whole else f"{part[:-_LONGEST]}... ({len(text)} characters)"
