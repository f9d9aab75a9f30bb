"""Serves `/metrics` on listeners of its own, by `heliograph.metrics.listeners` or `--metrics`.

The REST server, if there is one, has the page too. TLS, login and rules are those of REST.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

import click

from heliograph.cli.inputs import MachineLookup
from heliograph.config import keys
from heliograph.config.effective.connect_config import kind_of
from heliograph.config.effective.metrics_config import metrics_config
from heliograph.config.effective.rest_config import parse_listener, rest_access
from heliograph.config.keys.table import split_list
from heliograph.errors import ConfigError, ConnectError, HeliographError
from heliograph.metrics.page import MetricOptions
from heliograph.web.access.authenticator import Authenticator
from heliograph.web.endpoints.routes import METRIC_ROUTES
from heliograph.web.server.app import make_app
from heliograph.web.server.rest_server import RestServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from heliograph.config.effective.metrics_config import MetricsConfig
    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.config.effective.rest_config import RestListener
    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.connect.contract.herder import HerderView
    from heliograph.web.exchange import Worker


log = logging.getLogger("heliograph")

_OPTION = "--metrics"
_GIVEN = f"{__name__}.listener"


def _remember(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_GIVEN] = parse_listener(_OPTION, value)


metrics_option = click.option(
    _OPTION,
    metavar="[HOST:]PORT|URL",
    expose_value=False,
    callback=_remember,
    help="Serve metrics for Prometheus at this address. Overrides `heliograph.metrics.listeners` in the file.",
)


class WantedMetrics(NamedTuple):
    """The listeners for metrics alone. A failure of `--metrics` is an error, one of the file's is not."""

    listeners: tuple[RestListener, ...]
    authenticator: Authenticator
    is_option: bool


def wanted_metrics(raw: Mapping[str, str], resolver: Resolver) -> WantedMetrics | None:
    """Return the listeners of the option, else of the file; None if neither has any."""
    given = click.get_current_context().meta.get(_GIVEN)
    if given is not None:
        return _wanted(raw, resolver, (given,), is_option=True)
    listeners = metrics_config(raw, resolver).listeners
    try:
        return _wanted(raw, resolver, listeners, is_option=False) if listeners else None
    except HeliographError as error:
        _log_unserved(error)
        return None


def _wanted(
    raw: Mapping[str, str], resolver: Resolver, listeners: tuple[RestListener, ...], *, is_option: bool
) -> WantedMetrics:
    access = rest_access(raw, resolver, listeners, MachineLookup())
    return WantedMetrics(listeners, Authenticator(access, raw, resolver, listeners), is_option)


def _log_unserved(error: HeliographError) -> None:
    log.warning("Metrics are not served: %s", error)


@contextmanager
def serving_metrics(wanted: WantedMetrics | None, worker: Worker) -> Iterator[RestServer | None]:
    """Serve metrics on their own listeners inside the block, if that is wanted; yield the server."""
    server = None if wanted is None else _started(wanted, worker)
    try:
        yield server
    finally:
        if server is not None:
            server.stop()


def _started(wanted: WantedMetrics, worker: Worker) -> RestServer | None:
    app = make_app(worker, wanted.authenticator, routes=METRIC_ROUTES)
    tls = wanted.authenticator.listener_tls
    server = RestServer(app, wanted.listeners, tls, what="metrics server", key=keys.METRICS_LISTENERS.name)
    try:
        server.start()
    except HeliographError as error:
        # What is copied is worth more than its metrics; an alert finds that the page is missing.
        if wanted.is_option:
            raise
        _log_unserved(error)
        return None
    log.info("Metrics are at %s/metrics", server.url)
    return server


class FileOptions:
    """The options of a dedicated-mode file: those of its newest version, read once, since placeholders name files."""

    def __init__(self, newest: Callable[[], MirrorMakerConfig]) -> None:
        self._newest = newest
        self._read = newest()
        self._options = _file_options(self._read)

    def __call__(self) -> MetricOptions:
        """Return the options; if those of a new version cannot be read now, those before."""
        config = self._newest()
        if config is not self._read:
            self._read = config
            with suppress(ConfigError):  # a secret that is being renewed
                self._options = _file_options(config)
        return self._options


def _file_options(config: MirrorMakerConfig) -> MetricOptions:
    formats = (config.settings(flow)[keys.METRIC_NAMES_FORMATS] for flow in config.flows)
    found = metrics_config(config.raw, config.resolver)
    return MetricOptions.of(found.dialect, (name for names in formats for name in names), found.partitions_max)


def worker_options(config: MetricsConfig, herder: HerderView) -> MetricOptions:
    """Return the options of a worker with the names that its connectors ask for; none do before it has started."""
    found: set[str] = set()
    with suppress(ConnectError):
        for name in herder.connectors():
            found |= _formats_of(herder, name)
    return MetricOptions.of(config.dialect, found, config.partitions_max)


def _formats_of(herder: HerderView, name: str) -> set[str]:
    try:
        config = herder.info(name).config
    except ConnectError:  # deleted meanwhile
        return set()
    text = config.get(keys.METRIC_NAMES_FORMATS.name, "")
    if text.strip():
        return set(split_list(text))
    return set() if kind_of(config.get("connector.class")) == "heartbeat" else set(keys.METRIC_NAMES_FORMATS.default)
