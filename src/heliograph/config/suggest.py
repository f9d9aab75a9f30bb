"""The nearest known name for a mistyped one."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """` Did you mean 'x'?` with the prefix put back, or an empty text where nothing is near."""
    near = get_close_matches(name, list(known), n=1, cutoff=0.75)
    return f" Did you mean '{prefix}{near[0]}'?" if near else ""
