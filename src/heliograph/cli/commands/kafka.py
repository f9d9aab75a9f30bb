"""`heliograph kafka start|stop|remove|list|tool|fetch`: real Apache Kafka on this machine, for trying things out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from heliograph.cli.inputs import read_config_file
from heliograph.cli.output import fetch_progress
from heliograph.config.syntax.properties import as_map, parse_properties
from heliograph.embedded.jars import DEFAULT_VERSION, broker_jars, connect_jars, ensure_jars
from heliograph.embedded.kafka_cluster import (
    EmbeddedCluster,
    find_cluster,
    forget_cluster,
    list_clusters,
    start_cluster,
)
from heliograph.embedded.kafka_tools import tool_command
from heliograph.embedded.layouts import SUPPORTED
from heliograph.errors import ConfigError, EmbeddedError

_VERSION_HELP = f"Version of Apache Kafka: {SUPPORTED}."


@click.group()
def kafka() -> None:
    """Start, stop, use and remove Kafka clusters on this machine."""


@kafka.command()
@click.argument("name")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="Port of the first broker; the others get the following ports. Required for a new cluster.",
)
@click.option("--brokers", type=click.IntRange(1, 9), help="Number of brokers; 1 by default for a new cluster.")
@click.option("--version", help=f"{_VERSION_HELP} {DEFAULT_VERSION} by default for a new cluster.")
@click.option(
    "--data", type=click.Path(path_type=Path), help="Directory for the cluster's data, which is kept across restarts."
)
@click.option("--config", "configs", multiple=True, metavar="FILE|K=V", help="Broker settings; may be repeated.")
def start(
    name: str,
    port: int | None,
    brokers: int | None,
    version: str | None,
    data: Path | None,
    configs: tuple[str, ...],
) -> None:
    """Start the cluster NAME. A stopped cluster keeps the settings that are not given."""
    known = find_cluster(name)
    if known is not None:
        port = port or known.brokers[0].port
        brokers = brokers or len(known.brokers)
        version = version or known.version
        data = data or Path(known.folder)
    if port is None:
        raise click.UsageError(f"Missing option '--port': '{name}' is a new cluster, so give the port of its broker.")
    with fetch_progress() as on_progress:
        cluster = start_cluster(
            name,
            port=port,
            brokers=brokers or 1,
            version=version or DEFAULT_VERSION,
            data=data,
            config=_broker_config(configs) if configs or known is None else dict(known.config),
            on_progress=on_progress,
        )
    click.echo(f"{name}: Apache Kafka {cluster.version} is running at {cluster.bootstrap} (data in {cluster.folder})")


@kafka.command()
@click.argument("name")
@click.option("--delete", is_flag=True, help="Delete its data too.")
def stop(name: str, delete: bool) -> None:
    """Stop the cluster NAME."""
    cluster = _known(name)
    was_running = bool(cluster.running)
    cluster.stop(remove_data=delete)
    if delete:
        forget_cluster(name)
    deleted = ", its data deleted" if delete else ""
    click.echo(f"{name}: {'stopped' if was_running else 'was not running'}{deleted}")


@kafka.command()
@click.argument("name")
@click.option("--stop", "stops", is_flag=True, help="Stop it first if it is running.")
def remove(name: str, stops: bool) -> None:
    """Remove the cluster NAME: its data, and its entry in the list."""
    cluster = _known(name)
    is_running = bool(cluster.running)
    if is_running and not stops:
        raise EmbeddedError(
            f"The cluster '{name}' is running at {cluster.bootstrap}; stop it with 'heliograph kafka stop {name}', or"
            " give --stop."
        )
    cluster.stop(remove_data=True)
    forget_cluster(name)
    rest = f"; {cluster.folder} holds other files and stays" if Path(cluster.folder).exists() else ""
    click.echo(f"{name}: {'stopped and removed' if is_running else 'removed'}{rest}")


@kafka.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("name")
@click.argument("tool")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def tool(name: str, tool: str, arguments: tuple[str, ...]) -> None:
    """Run one of Kafka's tools against the cluster NAME.

    TOOL is the name of Kafka's script, as in: heliograph kafka tool A kafka-topics --list. The bootstrap servers are
    added unless ARGUMENTS contain them.
    """
    with fetch_progress() as on_progress:
        command = tool_command(_known(name), tool, arguments, on_progress)
    sys.stdout.flush()
    os.execv(command[0], command)  # noqa: S606  (the tool takes our place: signals, input and exit code are its own)


@kafka.command(name="list")
def list_() -> None:
    """List the clusters started on this machine."""
    clusters = list_clusters()
    if not clusters:
        click.echo("No cluster; start one with: heliograph kafka start NAME --port 9092")
    for cluster in clusters:
        state = f"{len(cluster.running)} of {len(cluster.brokers)} brokers running"
        click.echo(f"{cluster.name}: Kafka {cluster.version} at {cluster.bootstrap}, {state}, data in {cluster.folder}")


@kafka.command()
@click.option("--version", default=DEFAULT_VERSION, show_default=True, help=_VERSION_HELP)
@click.option("--tools", is_flag=True, help="Java MirrorMaker 2 and Kafka's tools too, for tests and the benchmark.")
def fetch(version: str, tools: bool) -> None:
    """Fetch Kafka's jars now, so that the first start does not have to."""
    for jars in [broker_jars(version), *([connect_jars(version)] if tools else [])]:
        with fetch_progress() as on_progress:
            folder = ensure_jars(jars, on_progress)
        click.echo(f"{jars.name}: {folder}")


def _known(name: str) -> EmbeddedCluster:
    cluster = find_cluster(name)
    if cluster is None:
        raise EmbeddedError(f"There is no cluster '{name}'; 'heliograph kafka list' lists the clusters.")
    return cluster


def _broker_config(configs: tuple[str, ...]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for given in configs:
        name, equals, value = given.partition("=")
        if equals:
            settings[name.strip()] = value.strip()
        elif Path(given).is_file():
            settings |= as_map(parse_properties(read_config_file(Path(given))))
        else:
            raise ConfigError(f"--config {given}: neither a file nor key=value.")
    return settings
