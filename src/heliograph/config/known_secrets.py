"""Values known to be secret in this process, so that a text can be shown without them wherever they ended up.

Known are what placeholders of secrets and of connectors stood for, values of PASSWORD keys, secret options of a login
module, and tokens. `redaction` judges a text by its looks; this module finds a secret whatever stands around it.

Invariants: the number of values is bounded, the oldest leave first. Values below six letters are not kept: they occur
in ordinary words. Every step on the dictionary is one operation of the interpreter, so threads need no lock.
"""

from __future__ import annotations

_SHORTEST = 6
_MOST = 4096
_IN_NAMES = frozenset({"password", "secret"})  # as a value they would make names of keys unreadable
_known: dict[str, str] = {}


def remember_secret(value: str, shown: str) -> None:
    """Keep a value; from now on `hide_known` shows the other text in its place."""
    text = value.strip()
    if len(text) < _SHORTEST or text in _IN_NAMES or "${" in text:  # a placeholder names a secret without being one
        return
    _known.setdefault(text, shown)
    for oldest in list(_known)[: max(0, len(_known) - _MOST)]:
        _known.pop(oldest, None)


def hide_known(text: str) -> str:
    """The text with what was written in place of each known value."""
    found = [(value, shown) for value, shown in list(_known.items()) if value in text]
    for value, shown in sorted(found, key=lambda each: -len(each[0])):  # a part of a secret must not spoil the whole
        text = text.replace(value, shown)
    return text
