"""The nearest known name for a mistyped one, and what holds as long as the name is mistyped."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST_NAME = 256
# A flow that was meant to be about some is about all: too much to leave it to the reader.
_EVERYTHING = {"topics": "'topics' stays '.*': every topic", "groups": "'groups' stays '.*': every group"}


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that may be meant; a name longer than any that is known is not compared."""
    if len(name) > _LONGEST_NAME:
        return None
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.75)), None)


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """` Did you mean 'x'?` with the prefix put back, or an empty text where nothing is near."""
    near = nearest(name, known)
    return f" Did you mean '{prefix}{near}'?" if near else ""


def until_then(key: str | None) -> str:
    """What a key that is set nowhere means, in a sentence; empty for one whose default does no harm."""
    return f" Until then {_EVERYTHING[key]}." if key in _EVERYTHING else ""
