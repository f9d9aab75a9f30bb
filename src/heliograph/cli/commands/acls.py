"""`heliograph acls FILE`: the exact ACLs that the flows of a file, or the connectors of a worker, need.

Connects to no cluster.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heliograph.cli.acl_texts import as_commands, as_data, as_kafka_users
from heliograph.cli.inputs import MachineLookup, read_config_file, read_mirror_file, secrets_option
from heliograph.config.validate.dedicated_file import usable
from heliograph.config.validate.worker_file import examine_worker, usable_worker
from heliograph.errors import ConfigError
from heliograph.mirror.acls.acl import CLUSTER
from heliograph.operations.configuration_checks import examine_all
from heliograph.operations.needed_acls import needed_acls
from heliograph.operations.principals import parse_principals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from heliograph.config.effective.connect_config import ConnectorConfig, WorkerConfig
    from heliograph.operations.needed_acls import Granted


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--worker",
    "worker_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The files are connectors (JSON) of this worker.",
)
@click.option(
    "--principal",
    "principals",
    metavar="CLUSTER=User:X",
    multiple=True,
    help="Principal of Heliograph on a cluster; CLUSTER.ROLE for one client; may be repeated.",
)
@click.option(
    "--format", "form", type=click.Choice(["kafka-acls", "strimzi", "json"]), default="kafka-acls", show_default=True
)
@secrets_option
def acls(files: tuple[Path, ...], worker_file: Path | None, principals: tuple[str, ...], form: str) -> None:
    """Print the ACLs that FILE needs, per cluster and principal: no more, and each with its reason.

    Brokers before Kafka 2.8 also require IDEMPOTENT_WRITE on the target's cluster. The command connects to no
    cluster and needs no secrets: it reads only the user name of a login.
    """
    given = parse_principals(principals)
    if worker_file is None:
        texts = [read_mirror_file(file, needs_secrets=False) for file in files]
        reports = [examine_all(text, MachineLookup()) for text in texts]
        configs = [usable(report) for report in reports]
        warnings = [warning for report in reports for warning in report.warnings]
        granted = needed_acls(configs, given)
    else:
        report = examine_worker(read_config_file(worker_file), MachineLookup(), needs_secrets=False)
        worker, warnings = usable_worker(report), list(report.warnings)
        connectors = [connector for file in files for connector in _connectors(file, worker)]
        granted = needed_acls(connectors, given, worker)
    for warning in (*warnings, *(each.doubt for each in granted if not each.is_known)):
        click.echo(f"warning: {warning}", err=True)
    for note in _notes(granted):
        click.echo(f"note: {note}", err=True)
    if form == "json":
        click.echo(json.dumps(as_data(granted), indent=2))
    else:
        click.echo((as_commands if form == "kafka-acls" else as_kafka_users)(granted).rstrip("\n"))


def _connectors(file: Path, worker: WorkerConfig) -> Iterator[ConnectorConfig]:
    """The connectors of a file, as one posts or puts them: with `name` and `config`, the config alone, or a list."""
    try:
        data = json.loads(read_config_file(file))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file}, line {error.lineno}: this is not JSON: {error.msg}.") from None
    for each in data if isinstance(data, list) else [data]:
        if not isinstance(each, dict):
            raise ConfigError(f"{file}: a connector is a JSON object.")
        config = each["config"] if isinstance(each.get("config"), dict) else each
        name = str(each.get("name") or config.get("name") or file.stem)
        yield worker.connector(name, {key: _text(value) for key, value in config.items()})


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _notes(granted: Sequence[Granted]) -> Iterator[str]:
    for each in granted:
        login = each.login
        if each.is_known and each.doubt:
            yield each.doubt
        if any(acl.operation == "ALTER" and acl.resource.kind == CLUSTER for acl in each.acls):
            yield (
                f"ALTER on the cluster '{login.cluster}' lets {login.principal} give any ACL to anyone; where ACLs of"
                " copies are granted by hand, set sync.topic.acls.enabled to false and it is not needed."
            )
