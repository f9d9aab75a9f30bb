"""Finds topics and groups that a flow wants and a cluster hides from its principal: they are not simply missing.

Kafka omits from a list what the principal may not describe. So if no listed name matches a wanted one, that name, or
one with the wanted prefix, is described by itself: the error code shows whether it is hidden.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from heliograph.kafka.admin.acl_admin import NOTHING, group_operations
from heliograph.kafka.error_codes import TOPIC_AUTHORIZATION_FAILED
from heliograph.mirror.acls.acl import GROUP, TOPIC, Resource

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from heliograph.kafka.admin.admin import Admin
    from heliograph.mirror.acls.name_prefixes import Names


def hidden_topics(admin: Admin, wanted: Iterable[Names], listed: Collection[str]) -> tuple[str, ...]:
    """Return a sentence for each wanted name or prefix of which nothing is listed because it is hidden."""
    asked = {names.example: names for names in _not_among(wanted, listed)}
    codes = admin.view(asked).error_codes if asked else {}
    hidden = (names for example, names in asked.items() if codes.get(example) == TOPIC_AUTHORIZATION_FAILED)
    return tuple(_sentence(admin, Resource(TOPIC, names), "READ") for names in hidden)


def hidden_groups(admin: Admin, wanted: Iterable[Names], listed: Collection[str]) -> tuple[str, ...]:
    """Return the same for consumer groups."""
    hidden = (names for names in _not_among(wanted, listed) if group_operations(admin, names.example) == NOTHING)
    return tuple(_sentence(admin, Resource(GROUP, names), "DESCRIBE") for names in hidden)


def _not_among(wanted: Iterable[Names], listed: Collection[str]) -> list[Names]:
    found, ordered = set(listed), sorted(listed)

    def is_there(names: Names) -> bool:
        if names.is_whole:
            return names.start in found
        at = bisect_left(ordered, names.start)
        return at < len(ordered) and ordered[at].startswith(names.start)

    return [names for names in wanted if not is_there(names)]


def _sentence(admin: Admin, resource: Resource, needs: str) -> str:
    return f"'{admin.alias}' does not show us {resource}; the principal needs {needs} on it"
