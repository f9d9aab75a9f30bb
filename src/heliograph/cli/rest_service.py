"""Serves the REST API of `heliograph run`, if the file has `listeners` or `rest.port`, or with `--rest`.

It is for reading; with `--rest-actions` also for what does not change the connectors that the file defines.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import click

from heliograph.cli.inputs import MachineLookup
from heliograph.cli.metrics_service import FileOptions, serving_metrics
from heliograph.config.effective.rest_config import (
    file_listeners,
    parse_listener,
    rest_access,
)
from heliograph.config.validate.connector_validation import ConnectorPlugins
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime.file_herder import FileHerder
from heliograph.driver.clusters.cluster_clients import make_admin
from heliograph.errors import ConfigError, HeliographError
from heliograph.kafka.admin.admin import cluster_id
from heliograph.mirror.policy.class_checks import java_class_error
from heliograph.web.access.authenticator import Authenticator
from heliograph.web.endpoints.metric_pages import MetricPages
from heliograph.web.exchange import Worker
from heliograph.web.server.app import make_app
from heliograph.web.server.rest_server import RestServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from heliograph.cli.metrics_service import WantedMetrics
    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.config.effective.rest_config import RestListener
    from heliograph.connect.contract.herder import Herder
    from heliograph.connect.runtime.file_herder import RunningFile


log = logging.getLogger("heliograph")

_OPTION = "--rest"
_GIVEN = f"{__name__}.listener"
_ACTIONS_OPTION = "--rest-actions"
_ACTIONS = f"{__name__}.actions"


def _remember(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_GIVEN] = parse_listener(_OPTION, value)


rest_option = click.option(
    _OPTION,
    metavar="[HOST:]PORT|URL",
    expose_value=False,
    callback=_remember,
    help="Serve Connect's REST API at this address, read-only. Overrides `listeners` and `rest.port` in the file.",
)


def _remember_actions(context: click.Context, _option: click.Parameter, value: bool) -> None:
    context.meta[_ACTIONS] = value


rest_actions_option = click.option(
    _ACTIONS_OPTION,
    is_flag=True,
    expose_value=False,
    callback=_remember_actions,
    help="Let REST also restart, stop and resume flows, alter offsets and set log levels.",
)


class WantedRest(NamedTuple):
    """The listeners and the authentication of REST. A failure of `--rest` is an error, one of the file's is not."""

    listeners: tuple[RestListener, ...]
    authenticator: Authenticator
    is_option: bool
    has_actions: bool


def wanted_rest(config: MirrorMakerConfig) -> WantedRest | None:
    """Return the listeners of the option, else of the file; None if neither has any.

    The file's listeners may be meant for Java's workers; if they cannot be served, the flows still run.
    """
    meta = click.get_current_context().meta
    given, has_actions = meta.get(_GIVEN), bool(meta.get(_ACTIONS))
    if given is not None:
        return _wanted(config, (given,), is_option=True, has_actions=has_actions)
    try:
        listeners = file_listeners(config.raw, config.resolver)
        wanted = _wanted(config, listeners, is_option=False, has_actions=has_actions) if listeners else None
    except HeliographError as error:
        _log_unserved(error)
        return None
    if wanted is None and has_actions:
        raise ConfigError(f"{_ACTIONS_OPTION}: REST is not served; add {_OPTION}, or `listeners` to the file.")
    return wanted


def _wanted(
    config: MirrorMakerConfig, listeners: tuple[RestListener, ...], *, is_option: bool, has_actions: bool
) -> WantedRest:
    access = rest_access(config.raw, config.resolver, listeners, MachineLookup())
    authenticator = Authenticator(access, config.raw, config.resolver, listeners)
    return WantedRest(listeners, authenticator, is_option, has_actions)


def _log_unserved(error: HeliographError) -> None:
    log.warning("REST is not served: %s", error)


@contextmanager
def file_rest(wanted: WantedRest | None, metrics: WantedMetrics | None, runs: RunningFile) -> Iterator[None]:
    """Serve REST, and metrics on their own listeners, while the flows run, if they are wanted."""
    if wanted is None and metrics is None:
        yield
        return
    herder = FileHerder(runs, LogLevels(), partial(_first_targets_id, runs), _listeners(wanted, metrics))
    plugins = ConnectorPlugins({}, runs.config.resolver, java_class_error)
    pages = MetricPages(FileOptions(lambda: runs.config))
    # Requests that would change what the file defines are refused before they reach the herder.
    worker = Worker(cast("Herder", herder), plugins, herder.log_levels, pages)
    with serving_metrics(metrics, worker):
        server = None if wanted is None else _started(wanted, worker, herder)
        try:
            yield
        finally:
            if server is not None:
                server.stop()


def _listeners(wanted: WantedRest | None, metrics: WantedMetrics | None) -> list[RestListener]:
    return [listener for each in (wanted, metrics) if each is not None for listener in each.listeners]


def _first_targets_id(runs: RunningFile) -> str:
    flow = runs.config.flows[0]
    admin = make_admin(runs.config, flow.target, flow)
    try:
        return cluster_id(admin)
    finally:
        admin.close()


def _started(wanted: WantedRest, worker: Worker, herder: FileHerder) -> RestServer | None:
    app = make_app(worker, wanted.authenticator, read_only=True, has_actions=wanted.has_actions)
    server = RestServer(app, wanted.listeners, wanted.authenticator.listener_tls)
    try:
        server.start()
    except HeliographError as error:
        # Another process may run the same file and hold the port: Java's MM2, or a `run` for other clusters.
        if wanted.is_option:
            raise
        _log_unserved(error)
        return None
    herder.worker_id = server.url.partition("//")[2]
    log.info("Connect's REST API is at %s, %s", server.url, "with actions" if wanted.has_actions else "for reading")
    return server
