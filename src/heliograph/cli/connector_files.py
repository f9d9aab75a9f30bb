"""The three files that make a source cluster's replication: `mm2-cpc-X.json`, `mm2-hbc-X.json`, `mm2-msc-X.json`.

Each holds one connector's configuration as Connect's `PUT /connectors/NAME/config` takes it; the connector is named as
its file. All three are read, and every problem reported, before anything is deployed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from heliograph.cli.inputs import read_config_file
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from heliograph.diagnostics import Diagnostic


class ConnectorFile(NamedTuple):
    """One of the three connectors, and the words for it in messages."""

    code: str
    singular: str
    plural: str
    conf: str

    def name_for(self, cluster: str) -> str:
        """The connector's name."""
        return f"mm2-{self.code}-{cluster}"


_SUFFIX = ".json"
PARTS = (
    ConnectorFile("cpc", "Checkpoint", "Checkpoints", "Checkpoints"),
    ConnectorFile("hbc", "Heartbeat", "Heartbeats", "Heartbeat"),
    ConnectorFile("msc", "Source", "Source", "Source"),
)


def check_cluster(cluster: str) -> None:
    """A cluster's name must be one."""
    if not cluster.strip():
        raise ConfigError("Cluster is empty")
    if cluster.endswith(_SUFFIX):
        name = cluster.rpartition("/")[2].removesuffix(_SUFFIX)
        folder = cluster.rpartition("/")[0] or "."
        for part in PARTS:
            name = name.removeprefix(part.name_for(""))
        raise ConfigError(f"'{cluster}' is a file; name the cluster: heliograph deploy {name} --dir {folder}")


def read_connector_files(folder: Path, cluster: str) -> dict[ConnectorFile, dict[str, Any]]:
    """The configurations of a cluster's three connectors."""
    check_cluster(cluster)
    found: dict[ConnectorFile, dict[str, Any]] = {}
    problems: list[Diagnostic] = []
    for part in PARTS:
        file = folder / f"{part.name_for(cluster)}.json"
        try:
            found[part] = _read(file, part)
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return found


def _read(file: Path, part: ConnectorFile) -> dict[str, Any]:
    if not file.exists():
        raise ConfigError(f"{part.conf} conf is missing. Create file {file}")
    try:
        config = json.loads(read_config_file(file))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file}, line {error.lineno}: this is not JSON: {error.msg}.") from None
    if not isinstance(config, dict):
        raise ConfigError(f'{file}: a connector\'s configuration is a JSON object, as in {{"name": ...}}.')
    for key, value in config.items():
        if value is None:
            raise ConfigError(f"{file}: '{key}' is null; write a value, or leave the key out.")
        if isinstance(value, dict | list):
            raise ConfigError(
                f"{file}: the value of '{key}' must be text, a number or true or false; the file holds the"
                ' connector\'s keys themselves, without a "config" around them.'
            )
    return config
