"""Whether REST could be served as a file wants it: its login, its rules, its stores, without listening anywhere."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from heliograph.api.door import read_rules
from heliograph.api.principals import Users
from heliograph.api.tls import listener_context
from heliograph.cli.machine import MachineLookup
from heliograph.config import worker_keys
from heliograph.config.rest_access import RestAccess, https_settings, jaas_file_of, rest_access
from heliograph.errors import ConfigError, KeyStoreError
from heliograph.worker.named_files import check_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from heliograph.config.listeners import Listener
    from heliograph.config.placeholders import Resolver
    from heliograph.config.rest_access import ClientAuth
    from heliograph.config.types import Settings


def rest_problems(raw: Mapping[str, str], resolver: Resolver, listeners: Sequence[Listener]) -> list[str]:
    """Each a sentence that begins with its key."""
    access = RestAccess()
    problems: dict[str, None] = {}
    try:
        access = rest_access(raw, resolver, listeners, MachineLookup())
    except ConfigError as error:
        problems |= dict.fromkeys(error.problems)
    try:
        for key, step in _steps(raw, resolver, listeners, access):
            try:
                step()
            except ConfigError as error:
                problems |= dict.fromkeys(f"{key}: {problem}" if key else problem for problem in error.problems)
    except ConfigError as error:
        problems |= dict.fromkeys(error.problems)
    return list(problems)


def _steps(
    raw: Mapping[str, str], resolver: Resolver, listeners: Sequence[Listener], access: RestAccess
) -> Iterator[tuple[str, Callable[[], object]]]:
    """What the server does at its start, each with the key that its sentences lack."""
    jaas_key, jaas_file = jaas_file_of(raw, resolver, MachineLookup())
    if jaas_file:
        yield jaas_key, lambda: Users(jaas_file)
    rules = worker_keys.REST_RULES_FILE.name
    if raw.get(rules):
        yield rules, lambda: read_rules(resolver.resolve(rules, raw[rules]))
    if any(listener.is_https for listener in listeners):
        tls = https_settings(raw, resolver)
        yield "", lambda: check_files(tls)
        yield "", lambda: _check_listener(tls, access.client_auth)


def _check_listener(tls: Settings, client_auth: ClientAuth) -> None:
    # What is wrong with the stores themselves has been told.
    with suppress(KeyStoreError):
        listener_context(lambda: tls, client_auth)
