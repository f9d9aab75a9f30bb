"""REST for reading beside `heliograph run`: where the file has `listeners` or `rest.port`, or with `--rest`.

Whether REST could be served as a file wants it: its login, its rules, its stores, without listening anywhere.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, cast

import click

from heliograph.cli.inputs import MachineLookup
from heliograph.config.effective.rest_config import (
    RestAccess,
    file_listeners,
    https_settings,
    jaas_file_of,
    parse_listener,
    rest_access,
)
from heliograph.config.keys import worker_keys
from heliograph.config.validate.connector_plugins import ConnectorPlugins
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime.file_herder import FileHerder
from heliograph.diagnostics import Diagnostic, problem
from heliograph.driver.clusters.cluster_clients import make_admin
from heliograph.errors import ConfigError, HeliographError, KeyStoreError
from heliograph.kafka.admin.admin import cluster_id
from heliograph.mirror.policy.class_checks import java_class_error
from heliograph.operations.named_files import check_files
from heliograph.web.access.authenticator import Authenticator, read_rules
from heliograph.web.access.callers import Users
from heliograph.web.access.listener_tls import listener_context
from heliograph.web.exchange import Worker
from heliograph.web.server.app import make_app
from heliograph.web.server.rest_server import RestServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.config.effective.rest_config import ClientAuth, RestListener
    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.config.resolve.settings import Settings
    from heliograph.connect.contract.herder import Herder
    from heliograph.driver.flow.source_flow import SourceFlow
    from heliograph.driver.loops.file_loops import Control


log = logging.getLogger("heliograph")

_OPTION = "--rest"
_GIVEN = f"{__name__}.listener"


def _remember(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_GIVEN] = parse_listener(_OPTION, value)


rest_option = click.option(
    _OPTION,
    metavar="[HOST:]PORT|URL",
    expose_value=False,
    callback=_remember,
    help="Serve Connect's REST API there, for reading; wins over `listeners` and `rest.port` of the file.",
)


class WantedRest(NamedTuple):
    """Where REST is to be served, and to whom; what `--rest` asks for must be."""

    listeners: tuple[RestListener, ...]
    door: Authenticator
    is_option: bool


def wanted_rest(config: MirrorMakerConfig) -> WantedRest | None:
    """What the option says, else the file; None where neither says anything.

    What the file says may be meant for Java's workers among themselves; where we cannot serve it, the flows still run.
    """
    given = click.get_current_context().meta.get(_GIVEN)
    if given is not None:
        return _wanted(config, (given,), is_option=True)
    try:
        listeners = file_listeners(config.raw, config.resolver)
        return _wanted(config, listeners, is_option=False) if listeners else None
    except HeliographError as error:
        _tell_unserved(error)
        return None


def _wanted(config: MirrorMakerConfig, listeners: tuple[RestListener, ...], *, is_option: bool) -> WantedRest:
    access = rest_access(config.raw, config.resolver, listeners, MachineLookup())
    return WantedRest(listeners, Authenticator(access, config.raw, config.resolver, listeners), is_option)


def _tell_unserved(error: HeliographError) -> None:
    log.warning("REST is not served: %s", error)


@contextmanager
def file_rest(
    wanted: WantedRest | None, config: MirrorMakerConfig, flows: Sequence[SourceFlow], control: Control
) -> Iterator[None]:
    """Serve as long as the flows run; nothing where nobody wants it."""
    if wanted is None:
        yield
        return

    def first_targets_id() -> str:
        flow = config.flows[0]
        admin = make_admin(config, flow.target, flow)
        try:
            return cluster_id(admin)
        finally:
            admin.close()

    levels = LogLevels()
    herder = FileHerder(config, flows, control, levels, first_targets_id)
    plugins = ConnectorPlugins({}, config.resolver, java_class_error)
    # What changes something is refused before it reaches the herder.
    app = make_app(Worker(cast("Herder", herder), plugins, levels), wanted.door, read_only=True)
    server = RestServer(app, wanted.listeners, wanted.door.listener_tls)
    try:
        server.start()
    except HeliographError as error:
        # The port may be another's who runs the same file: Java's MM2, or a `run` for other clusters.
        if wanted.is_option:
            raise
        _tell_unserved(error)
    else:
        herder.worker_id = server.url.partition("//")[2]
        log.info("Connect's REST API is at %s, for reading", server.url)
    try:
        yield
    finally:
        server.stop()


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
