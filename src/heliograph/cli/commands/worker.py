"""`heliograph worker FILE`: a Kafka Connect worker that runs MirrorMaker 2's connectors, with Connect's REST API."""

from __future__ import annotations

import logging
import os
import socket
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from heliograph.cli.inputs import MachineLookup, log_findings, read_config_file, spark_pairs
from heliograph.cli.metrics_service import metrics_option, serving_metrics, wanted_metrics, worker_options
from heliograph.cli.output import log_format_option, make_screen, verbose_option
from heliograph.cli.signals import hung_up, stop_on_signals
from heliograph.config import keys
from heliograph.config.effective.metrics_config import metrics_config
from heliograph.config.effective.rest_config import advertised_listener, rest_listeners
from heliograph.config.validate.connector_validation import ConnectorPlugins
from heliograph.config.validate.worker_file import examine_environment, examine_worker, usable_worker
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime.connect_worker import ConnectWorker, StartingHerder, lease_timeout_ms
from heliograph.driver.spark.spark_engine import LaunchOptions, SparkEngine
from heliograph.driver.spark.spark_session import SparkDriver, SparkSettings
from heliograph.errors import EngineError
from heliograph.mirror.policy.class_checks import class_error
from heliograph.web.access.authenticator import Authenticator
from heliograph.web.endpoints.metric_pages import MetricPages
from heliograph.web.exchange import Worker
from heliograph.web.server.app import make_app
from heliograph.web.server.rest_server import RestServer
from heliograph.wire.batches.forward import warm_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from heliograph.cli.metrics_service import WantedMetrics
    from heliograph.config.effective.connect_config import WorkerConfig
    from heliograph.connect.contract.herder import Herder


log = logging.getLogger("heliograph")

_POLL_S = 0.5
_NO_RELOAD = "SIGHUP changes nothing: REST changes connectors, and a change of the worker's file needs a restart."
_LOCAL_SLOTS = (
    256  # threads of a local Spark, which only wait for their tasks; more of them spare a connector the wait for a slot
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--master", metavar="M", help="Spark master; local by default.")
@click.option("--conf", "confs", metavar="K=V", multiple=True, help="A Spark setting; may be repeated.")
@verbose_option
@log_format_option
@metrics_option
def worker(file: Path | None, master: str | None, confs: tuple[str, ...]) -> None:
    """Run the mirror connectors of a Connect cluster: FILE is a connect-distributed.properties.

    Without FILE, environment variables CONNECT_* configure the worker, as in Connect's containers.
    """
    config = _load(file)
    # The worker's own values: the author of a connector must not decide how its secrets are sent.
    launch = LaunchOptions(lease_timeout_ms(config), config.settings[keys.UNENCRYPTED_SECRETS_ALLOWED])
    spark = SparkSettings(master or f"local[{_LOCAL_SLOTS}]", spark_pairs(confs))
    metrics = wanted_metrics(config.raw, config.resolver)
    make_screen().close()
    log_findings(file, config.warnings, config.notes)
    threading.Thread(target=warm_up, name="kernels", daemon=True).start()
    stopping = stop_on_signals()
    driver = SparkDriver(spark, starts=False)  # the leader's starts
    engine = SparkEngine(driver, launch)
    try:
        with serving(config, engine, stopping.is_set, metrics) as url:
            log.info("Connect's REST API is at %s, group '%s'", url, config.group_id)
            while not stopping.wait(_POLL_S):
                if driver.error is not None:
                    raise EngineError(str(driver.error))
                if hung_up().is_set():
                    hung_up().clear()
                    log.warning("%s", _NO_RELOAD)
            log.info("Stopping: flushing and committing source offsets ...")
    finally:
        engine.close()
    spark.remove_files()


def _load(file: Path | None) -> WorkerConfig:
    if file is None:
        return usable_worker(examine_environment(os.environ, MachineLookup()))
    return usable_worker(examine_worker(read_config_file(file), MachineLookup()))


@contextmanager
def serving(
    config: WorkerConfig,
    engine: SparkEngine,
    is_stopping: Callable[[], bool] = lambda: False,
    metrics: WantedMetrics | None = None,
) -> Iterator[str]:
    """Run a worker of its group, REST, and metrics on their own listeners, inside the block; yield REST's address.

    A worker that is stopping does not wait for its cluster or its group.
    """
    herder = StartingHerder(engine.snapshot)
    settings = config.settings
    levels = LogLevels()
    listeners = rest_listeners(settings)
    authenticator = Authenticator(config.rest, config.raw, config.resolver, listeners)
    of_metrics, view = metrics_config(config.raw, config.resolver), cast("Herder", herder)
    pages = MetricPages(lambda: worker_options(of_metrics, view))
    of_rest = Worker(view, ConnectorPlugins(config.raw, config.resolver, class_error), levels, pages)
    app = make_app(of_rest, authenticator)
    with RestServer(app, listeners, authenticator.listener_tls) as server, serving_metrics(metrics, of_rest):
        advertised = advertised_listener(settings, server.listeners, socket.gethostname())
        url = advertised.url
        if advertised.is_loopback:
            log.info(
                "REST is reached from this machine only; workers on other machines need listeners=http://0.0.0.0:%d",
                advertised.port,
            )
        connect = ConnectWorker(config, engine, url, levels)
        try:
            connect.start(is_stopping)
            herder.begun = connect.herder
            yield server.url
        finally:
            connect.stop()
