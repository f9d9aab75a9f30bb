"""Keys of a connector that nobody knows: Connect takes them without a word, and one typo then means another flow.

Only what cannot be anybody's is named. Behind the prefixes of clients, converters and transforms everything may stand,
and a class of the user's may read what it likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config.audit import CLASS_KEYS
from heliograph.config.keys import TABLE
from heliograph.config.suggest import did_you_mean
from heliograph.config.types import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OPEN_PREFIXES = (
    "source.",
    "target.",
    "consumer.",
    "producer.",
    "admin.",
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "transforms.",
    "predicates.",
    "topic.creation.",
    "config.providers.",
)

_MOST_HINTS = 50


def unknown_keys(config: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each."""
    if any(":" in config.get(key, "") for key in CLASS_KEYS):
        return
    known = [name for name, row in TABLE.items() if row.scope & Scope.CONNECTOR and not row.replaced_by]
    unknown = [name for name in config if name not in TABLE and not name.startswith(_OPEN_PREFIXES)]
    for number, name in enumerate(unknown):
        hint = did_you_mean(name, known) if number < _MOST_HINTS else ""  # each is compared with every known key
        yield f"{name}: unknown key; it has no effect.{hint}"
