"""Which changes of a source connector's config its running tasks need not notice.

MM2 restarts every task for any change. A flow here takes over what only its control loop reads: which topics there are,
how often it looks, what it compares. What a task was started with (clients, naming, exactly-once, sizes) needs other
tasks. Keys that no source connector reads are no reason to restart one either; where a key is not in the table, a
client, a filter or a policy may read it, and the tasks begin again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.types import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIVE = frozenset(
    row.name
    for row in (
        keys.TOPICS,
        keys.TOPICS_EXCLUDE,
        keys.CONFIG_PROPERTIES_EXCLUDE,
        keys.USE_DEFAULTS_FROM,
        keys.REFRESH_TOPICS_ENABLED,
        keys.REFRESH_TOPICS_INTERVAL_SECONDS,
        keys.SYNC_TOPIC_CONFIGS_ENABLED,
        keys.SYNC_TOPIC_CONFIGS_INTERVAL_SECONDS,
        keys.SYNC_TOPIC_ACLS_ENABLED,
        keys.SYNC_TOPIC_ACLS_INTERVAL_SECONDS,
        keys.REPLICATION_FACTOR,
        keys.HEARTBEATS_REPLICATION,
        keys.RESTART_BACKOFF_MAX_MS,
        keys.RESTART_ATTEMPTS_MAX,
    )
)


def is_live_change(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Whether a source connector can go from one config to the other without touching its tasks."""
    changed = {key for key in {*old, *new} if old.get(key) != new.get(key)}
    return all(_is_live(key) for key in changed)


def _is_live(key: str) -> bool:
    row = keys.TABLE.get(key)
    if row is None:
        return False
    name = row.replaced_by or row.name
    is_others = bool(row.scope & Scope.CONNECTOR) and not row.scope & Scope.SOURCE
    return name in _LIVE or is_others
