"""Keys that are right one by one and wrong together, for one flow.

A *problem* is what MM2 refuses to start a source connector with, or what cannot be obeyed; a *warning* what it accepts
and a user may not have meant. Switching off checkpoints or offset syncs is accepted: Java MM2 logs an error about its
checkpoint connector then, and goes on replicating.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.config.keys import client_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.config.resolve.settings import Settings
    from heliograph.model import Flow


_OFFSET_SYNCS_PREFIXES = ("offset-syncs-", "offset-syncs.topic.")


class Contradictions(NamedTuple):
    """Sentences, each beginning with a name of the file or the flow."""

    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def contradictions(flow: Flow, settings: Settings, consumer: Settings, producer: Settings) -> Contradictions:
    """What the keys of an enabled flow say against each other; every value must have been found valid before."""
    return Contradictions(
        (*_without_offset_syncs(settings), *_without_checkpoints(settings), *_not_exactly_once(settings, consumer)),
        (
            *_no_translation(flow, settings),
            *_aborted_records(settings, consumer),
            *_late_commits(settings, producer),
            *_names(flow, settings),
        ),
    )


def _without_offset_syncs(settings: Settings) -> Iterator[str]:
    if settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
        return
    switch = settings.written_as(keys.EMIT_OFFSET_SYNCS_ENABLED)
    for name in settings.values:
        if name.startswith(_OFFSET_SYNCS_PREFIXES):
            yield f"{settings.written(name)}: {switch} is false, so there is no offset-syncs topic; remove one of them."
    for needing in (keys.EMIT_CHECKPOINTS_ENABLED, keys.SYNC_GROUP_OFFSETS_ENABLED):
        if needing.name in settings.values and settings[needing]:
            yield f"{settings.written_as(needing)}: it needs offset syncs, and {switch} is false; change one of them."


def _without_checkpoints(settings: Settings) -> Iterator[str]:
    if not settings[keys.EMIT_CHECKPOINTS_ENABLED] and settings[keys.SYNC_GROUP_OFFSETS_ENABLED]:
        switch = settings.written_as(keys.EMIT_CHECKPOINTS_ENABLED)
        yield (
            f"{settings.written_as(keys.SYNC_GROUP_OFFSETS_ENABLED)}: group offsets come from checkpoints, and {switch}"
            " is false; change one of them."
        )


def _not_exactly_once(settings: Settings, consumer: Settings) -> Iterator[str]:
    if settings[keys.EXACTLY_ONCE_SUPPORT] != "required":
        return
    name = settings.written_as(keys.EXACTLY_ONCE_SUPPORT)
    if consumer[client_keys.ISOLATION_LEVEL] != "read_committed":
        isolation = consumer.written_as(client_keys.ISOLATION_LEVEL)
        yield f"{name}: it is 'required', and {isolation} is not read_committed; change one of them."
    if settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] != "enabled":
        target = settings[keys.TARGET_ALIAS]
        yield f"{name}: it is 'required'; add '{target}.{keys.EXACTLY_ONCE_SOURCE_SUPPORT.name} = enabled'."


def _no_translation(flow: Flow, settings: Settings) -> Iterator[str]:
    for key in (keys.EMIT_OFFSET_SYNCS_ENABLED, keys.EMIT_CHECKPOINTS_ENABLED):
        if not settings[key]:
            yield (
                f"{settings.written_as(key)}: no checkpoints are written for {flow}, so that consumer groups cannot"
                " move to the target. Java MM2 starts no checkpoint connector then and logs an error."
            )
            return


def _aborted_records(settings: Settings, consumer: Settings) -> Iterator[str]:
    is_exactly_once = settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled"
    if is_exactly_once and consumer[client_keys.ISOLATION_LEVEL] != "read_committed":
        yield (
            f"{consumer.written_as(client_keys.ISOLATION_LEVEL)}: records of aborted transactions are copied as if they"
            f" had been committed, although {settings.written_as(keys.EXACTLY_ONCE_SOURCE_SUPPORT)} is enabled."
        )


def _late_commits(settings: Settings, producer: Settings) -> Iterator[str]:
    interval_ms = settings[keys.OFFSET_FLUSH_INTERVAL_MS]
    timeout_ms = producer[client_keys.TRANSACTION_TIMEOUT_MS]
    longest_ms = timeout_ms // client_keys.COMMITS_PER_TRANSACTION_TIMEOUT
    if settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled" and interval_ms > longest_ms:
        yield (
            f"{settings.written_as(keys.OFFSET_FLUSH_INTERVAL_MS)}: with exactly-once progress is committed every"
            f" {longest_ms} ms, not every {interval_ms} ms: the target aborts a transaction that is open for"
            f" {timeout_ms} ms ({producer.written_as(client_keys.TRANSACTION_TIMEOUT_MS)})."
        )


def _names(flow: Flow, settings: Settings) -> Iterator[str]:
    if not settings[keys.TOPICS]:
        yield f"{settings.written_as(keys.TOPICS)}: the list is empty, so {flow} replicates no topic."
    separator = settings[keys.POLICY_SEPARATOR]
    if separator and separator in flow.source and settings[keys.POLICY_CLASS].endswith("DefaultReplicationPolicy"):
        yield (
            f"clusters: the alias '{flow.source}' contains the separator '{separator}' of remote topics; where they"
            " came from cannot be told by their names."
        )
