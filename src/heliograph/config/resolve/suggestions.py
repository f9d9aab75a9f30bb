"""The message about an unknown key: the nearest known name, and what holds as long as the name is mistyped."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from heliograph.diagnostics import Mention, Text, warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from heliograph.diagnostics import Diagnostic, Part, Place


_LONGEST_NAME = 256
# A flow that was meant to select some topics or groups selects all: the message says so.
_EVERYTHING = {"topics": "'topics' stays '.*': every topic", "groups": "'groups' stays '.*': every group"}


def unknown_key(
    name: str, near: str | None, *, what: Sequence[Part] = ("unknown key",), hint: Sequence[Part] = ()
) -> Diagnostic:
    """Return the warning about a key that nothing reads: `what` it is, the name that may be `near`, and a `hint`."""
    advice = (" Did you mean '", Mention(near, is_advice=True), "'?") if near else ()
    message = Text.of(*what, "; it has no effect.", *advice, *hint)
    return replace(warning(message, name), suggestion=near or "")


def unknown_field(place: Place, near: str | None, hint: str) -> Diagnostic:
    """Return the warning about a field of a YAML document that nothing reads."""
    message = f"unknown field; it has no effect.{_did_you_mean(near)}{hint}"
    return replace(warning(message, place=place), suggestion=near or "")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that may be meant; a name longer than any that is known is not compared."""
    if len(name) > _LONGEST_NAME:
        return None
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.75)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'x'?`, or an empty text if no known name is near."""
    return _did_you_mean(nearest(name, known))


def until_then(key: str | None) -> str:
    """Return what holds while a key is not set, as a sentence; empty for one whose default does no harm."""
    return f" Until then {_EVERYTHING[key]}." if key in _EVERYTHING else ""


def _did_you_mean(near: str | None) -> str:
    return f" Did you mean '{near}'?" if near else ""
