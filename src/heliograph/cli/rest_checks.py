"""Checks that REST could be served as a file configures it (login, rules, stores), without listening.

Apart from `rest_service`, so that `validate` loads neither the web server nor the driver.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from heliograph.cli.inputs import MachineLookup
from heliograph.config.effective.rest_config import RestAccess, https_settings, jaas_file_of, rest_access
from heliograph.config.keys import worker_keys
from heliograph.diagnostics import Diagnostic, problem
from heliograph.errors import ConfigError, KeyStoreError
from heliograph.operations.named_files import check_files
from heliograph.web.access.authenticator import read_rules
from heliograph.web.access.callers import Users
from heliograph.web.access.listener_tls import listener_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from heliograph.config.effective.rest_config import ClientAuth, RestListener
    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.config.resolve.settings import Settings


def rest_problems(raw: Mapping[str, str], resolver: Resolver, listeners: Sequence[RestListener]) -> list[Diagnostic]:
    """Return what keeps REST from being served."""
    access = RestAccess()
    problems: dict[Diagnostic, None] = {}
    try:
        access = rest_access(raw, resolver, listeners, MachineLookup())
    except ConfigError as error:
        problems |= dict.fromkeys(error.problems)
    try:
        for key, step in _steps(raw, resolver, listeners, access):
            try:
                step()
            except ConfigError as error:
                problems |= dict.fromkeys(problem(str(each), key) if key else each for each in error.problems)
    except ConfigError as error:
        problems |= dict.fromkeys(error.problems)
    return list(problems)


def _steps(
    raw: Mapping[str, str], resolver: Resolver, listeners: Sequence[RestListener], access: RestAccess
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the steps of the server's start, each with the key that its messages lack."""
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
    # `check_files` reports what is wrong with the stores themselves.
    with suppress(KeyStoreError):
        listener_context(lambda: tls, client_auth)
