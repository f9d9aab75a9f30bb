"""Keys that are right one by one and wrong together, for one flow.

A *problem* is what MM2 refuses to start a source connector with, or what cannot be obeyed; a *warning* what it accepts
and a user may not have meant. Switching off checkpoints or offset syncs is accepted: Java MM2 logs an error about its
checkpoint connector then, and continues to replicate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.keys import client_keys
from heliograph.diagnostics import Mention, Text, problem, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.config.resolve.settings import Settings
    from heliograph.diagnostics import Diagnostic
    from heliograph.model import Flow


_OFFSET_SYNCS_PREFIXES = ("offset-syncs-", "offset-syncs.topic.")


def contradictions(flow: Flow, settings: Settings, consumer: Settings, producer: Settings) -> Iterator[Diagnostic]:
    """Yield what the keys of an enabled flow say against each other; every value must have been found valid before."""
    yield from _without_offset_syncs(settings)
    yield from _without_checkpoints(settings)
    yield from _not_exactly_once(settings, consumer)
    yield from _no_translation(flow, settings)
    yield from _aborted_records(settings, consumer)
    yield from _late_commits(settings, producer)
    yield from _names(flow, settings)


def _without_offset_syncs(settings: Settings) -> Iterator[Diagnostic]:
    if settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
        return
    switch = Mention(settings.written_as(keys.EMIT_OFFSET_SYNCS_ENABLED))
    for name in settings.values:
        if name.startswith(_OFFSET_SYNCS_PREFIXES):
            message = Text.of(switch, " is false, so there is no offset-syncs topic; remove one of them.")
            yield problem(message, settings.written(name))
    for needing in (keys.EMIT_CHECKPOINTS_ENABLED, keys.SYNC_GROUP_OFFSETS_ENABLED):
        if needing.name in settings.values and settings[needing]:
            message = Text.of("it needs offset syncs, and ", switch, " is false; change one of them.")
            yield problem(message, settings.written_as(needing))


def _without_checkpoints(settings: Settings) -> Iterator[Diagnostic]:
    if not settings[keys.EMIT_CHECKPOINTS_ENABLED] and settings[keys.SYNC_GROUP_OFFSETS_ENABLED]:
        switch = Mention(settings.written_as(keys.EMIT_CHECKPOINTS_ENABLED))
        message = Text.of("group offsets come from checkpoints, and ", switch, " is false; change one of them.")
        yield problem(message, settings.written_as(keys.SYNC_GROUP_OFFSETS_ENABLED))


def _not_exactly_once(settings: Settings, consumer: Settings) -> Iterator[Diagnostic]:
    if settings[keys.EXACTLY_ONCE_SUPPORT] != "required":
        return
    name = settings.written_as(keys.EXACTLY_ONCE_SUPPORT)
    if consumer[client_keys.ISOLATION_LEVEL] != "read_committed":
        isolation = Mention(consumer.written_as(client_keys.ISOLATION_LEVEL))
        yield problem(Text.of("it is 'required', and ", isolation, " is not read_committed; change one of them."), name)
    if settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] != "enabled":
        worker_key = f"{settings[keys.TARGET_ALIAS]}.{keys.EXACTLY_ONCE_SOURCE_SUPPORT.name}"
        yield problem(Text.of("it is 'required'; add '", Mention(worker_key, is_advice=True), " = enabled'."), name)


def _no_translation(flow: Flow, settings: Settings) -> Iterator[Diagnostic]:
    for key in (keys.EMIT_OFFSET_SYNCS_ENABLED, keys.EMIT_CHECKPOINTS_ENABLED):
        if not settings[key]:
            yield warning(
                f"no checkpoints are written for {flow}, so that consumer groups cannot move to the target. Java MM2"
                " starts no checkpoint connector then and logs an error.",
                settings.written_as(key),
            )
            return


def _aborted_records(settings: Settings, consumer: Settings) -> Iterator[Diagnostic]:
    is_exactly_once = settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled"
    if is_exactly_once and consumer[client_keys.ISOLATION_LEVEL] != "read_committed":
        message = Text.of(
            "records of aborted transactions are copied as if they had been committed, although ",
            Mention(settings.written_as(keys.EXACTLY_ONCE_SOURCE_SUPPORT)),
            " is enabled.",
        )
        yield warning(message, consumer.written_as(client_keys.ISOLATION_LEVEL))


def _late_commits(settings: Settings, producer: Settings) -> Iterator[Diagnostic]:
    interval_ms = settings[keys.OFFSET_FLUSH_INTERVAL_MS]
    timeout_ms = producer[client_keys.TRANSACTION_TIMEOUT_MS]
    longest_ms = timeout_ms // client_keys.COMMITS_PER_TRANSACTION_TIMEOUT
    if settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled" and interval_ms > longest_ms:
        message = Text.of(
            f"with exactly-once source offsets are committed every {longest_ms} ms, not every {interval_ms} ms: the"
            f" target aborts a transaction that is open for {timeout_ms} ms (",
            Mention(producer.written_as(client_keys.TRANSACTION_TIMEOUT_MS)),
            ").",
        )
        yield warning(message, settings.written_as(keys.OFFSET_FLUSH_INTERVAL_MS))


def _names(flow: Flow, settings: Settings) -> Iterator[Diagnostic]:
    if not settings[keys.TOPICS]:
        yield warning(f"the list is empty, so {flow} replicates no topic.", settings.written_as(keys.TOPICS))
    separator = settings[keys.POLICY_SEPARATOR]
    if separator and separator in flow.source and settings[keys.POLICY_CLASS].endswith("DefaultReplicationPolicy"):
        yield warning(
            f"the alias '{flow.source}' contains the separator '{separator}' of remote topics; their names do not"
            " show where they came from.",
            keys.CLUSTERS.name,
        )
