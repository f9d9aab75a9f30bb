"""`heliograph deploy|undeploy|redeploy|status CLUSTER`: the connectors of a source cluster, from its three files.

Meaning and messages are those of the widespread script `mm2.sh`, against Heliograph's worker or any Connect cluster.
Differences: a failure ends in a non-zero exit code with Connect's reason; `redeploy` removes nothing before the worker
has validated the new files; the last status of a connector that was just removed does not count as a running one.

`heliograph connectors` lists every connector of a Connect cluster with its state and the states of its tasks.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heliograph.cli.connect_client import connect_options
from heliograph.cli.connector_files import PARTS, ConnectorFile, check_cluster, read_connector_files
from heliograph.cli.output import show_json, table
from heliograph.errors import RestError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from heliograph.cli.connect_client import ConnectClient


EXIT_FAILED = 1

_folder_option = click.option(
    "--dir",
    "folder",
    default="mm2",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Directory with the three files.",
)
_unread_folder_option = click.option(
    "--dir", expose_value=False, metavar="PATH", help="Accepted for symmetry with deploy; this command needs no files."
)


@click.command()
@click.argument("cluster")
@_folder_option
@connect_options
@click.pass_context
def deploy(context: click.Context, cluster: str, folder: Path, client: ConnectClient) -> None:
    """Start the connectors of CLUSTER that are not running: mm2-cpc-CLUSTER.json, mm2-hbc-..., mm2-msc-..."""
    configs = read_connector_files(folder, cluster)
    click.echo(f"Deploying cluster {cluster}")
    _exit(context, _deploy(client, cluster, configs, is_running=lambda name: _is_running(client, name)))


@click.command()
@click.argument("cluster")
@_unread_folder_option
@connect_options
@click.pass_context
def undeploy(context: click.Context, cluster: str, client: ConnectClient) -> None:
    """Remove the connectors of CLUSTER."""
    check_cluster(cluster)
    click.echo(f"Undeploying cluster {cluster}")
    _exit(context, _undeploy(client, cluster))


@click.command()
@click.argument("cluster")
@_folder_option
@connect_options
@click.pass_context
def redeploy(context: click.Context, cluster: str, folder: Path, client: ConnectClient) -> None:
    """Remove the connectors of CLUSTER and start them again from their files."""
    configs = read_connector_files(folder, cluster)
    click.echo(f"Redeploying cluster {cluster}")
    if not _are_sound(client, cluster, configs):
        click.echo("Nothing was removed.", err=True)
        _exit(context, False)
    is_undeployed = _undeploy(client, cluster)
    is_deployed = _deploy(client, cluster, configs, is_running=lambda _name: False)
    _exit(context, is_undeployed and is_deployed)


@click.command()
@click.argument("cluster")
@_unread_folder_option
@connect_options
@click.pass_context
def status(context: click.Context, cluster: str, client: ConnectClient) -> None:
    """Show the state of CLUSTER's connectors. Exit code 1: one is missing or has failed, or a task of it has."""
    check_cluster(cluster)
    found = [(part, client.status(part.name_for(cluster))) for part in PARTS]
    for part, each in found:
        click.echo(f"{part.singular} connector: {json.dumps(_state(each))}")
        for line in failures_of(each or {}):
            click.echo(f"  {line}")
    _exit(context, all(each is not None and not failures_of(each) for _part, each in found))


def failures_of(found: Mapping[str, Any]) -> list[str]:
    """A line for the connector and for each task that has failed, with the first line of its trace."""
    parts = [("connector", found.get("connector", {}))]
    parts += [(f"task {task.get('id')}", task) for task in found.get("tasks", ())]
    return [
        f"{name} FAILED: {next(iter((part.get('trace') or '').splitlines()), 'no trace')}"
        for name, part in parts
        if part.get("state") == "FAILED"
    ]


def _state(found: Mapping[str, Any] | None) -> str | None:
    state = (found or {}).get("connector", {}).get("state")
    return None if state is None else str(state)


def _is_running(client: ConnectClient, name: str) -> bool:
    """The status of a removed connector lingers for a moment."""
    return _state(client.status(name)) == "RUNNING" and client.is_there(name)


def _deploy(
    client: ConnectClient,
    cluster: str,
    configs: Mapping[ConnectorFile, dict[str, Any]],
    *,
    is_running: Callable[[str], bool],
) -> bool:
    """Deploy every connector, also if one fails; return whether all succeeded."""
    succeeded = True
    for part, config in configs.items():
        name = part.name_for(cluster)
        try:
            if is_running(name):
                click.echo(f"{part.conf} connector already deployed")
                continue
            click.echo(f"Deploying {part.plural.lower()} connector")
            client.put_config(name, config)
        except RestError as error:
            succeeded = _failed(f"deploy {part.plural.lower()} connector", error)
    return succeeded


def _are_sound(client: ConnectClient, cluster: str, configs: Mapping[ConnectorFile, dict[str, Any]]) -> bool:
    """Return whether the worker accepts all configurations, as far as it can validate them."""
    succeeded = True
    for part, config in configs.items():
        what = f"redeploy {part.plural.lower()} connector"
        try:
            for problem in _problems_of(client, part.name_for(cluster), config):
                succeeded = False
                click.echo(f"ERROR: Failed to {what}: {problem}", err=True)
        except RestError as error:
            succeeded = _failed(what, error)
    return succeeded


def _problems_of(client: ConnectClient, name: str, config: dict[str, Any]) -> list[str]:
    if not str(config.get("connector.class", "")).strip():
        return ["connector.class: the file has none"]
    # Validating asks for a name inside; putting has it in the path, and refuses another inside.
    if config.get("name", name) != name:
        return [f"name: the file has '{config['name']}'; write '{name}', or leave it out"]
    return client.problems_of({**config, "name": name})


def _undeploy(client: ConnectClient, cluster: str) -> bool:
    """Remove the connectors; return whether none is left. A missing connector is not a failure."""
    succeeded = True
    for part in PARTS:
        try:
            if not client.delete(part.name_for(cluster)):
                click.echo(f"WARN: {part.plural.lower()} connector not found")
            click.echo(f"{part.plural} connector undeployed")
        except RestError as error:
            succeeded = _failed(f"undeploy {part.plural.lower()} connector", error)
    return succeeded


def _failed(what: str, error: RestError) -> bool:
    """Print a refused request; a request without a response ends the command, since the next would get none either."""
    if not error.status:
        raise error
    click.echo(f"ERROR: Failed to {what}: {error}", err=True)
    return False


def _exit(context: click.Context, succeeded: bool) -> None:
    context.exit(0 if succeeded else EXIT_FAILED)


_HEADER = ("CONNECTOR", "TYPE", "STATE", "TASKS", "WORKER")


@click.command()
@connect_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def connectors(client: ConnectClient, *, as_json: bool) -> None:
    """List the connectors of a Connect cluster, Heliograph's or Java's, with their states."""
    statuses = client.statuses()
    if as_json:
        show_json(statuses)
        return
    if not statuses:
        click.echo("no connectors")
        return
    header, *rows = table(_HEADER, [_row(status) for status in statuses])
    click.echo(header)
    for row, status in zip(rows, statuses, strict=True):
        click.echo(row)
        for line in failures_of(status):
            click.echo(f"  {line}")


def _row(status: Mapping[str, Any]) -> tuple[Any, ...]:
    connector = status.get("connector", {})
    counts = Counter(task.get("state") for task in status.get("tasks", ()))
    tasks = ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "none"
    return status.get("name"), status.get("type"), connector.get("state"), tasks, connector.get("worker_id")
