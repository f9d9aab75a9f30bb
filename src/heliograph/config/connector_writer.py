"""Writes flows as connectors for Connect: three JSON files per flow as document 001 names them, and the worker's file.

The records of a source connector are written by its worker's producer, so what the target's producer has of its own is
written twice: as `target.producer.x`, and as `producer.override.x`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from heliograph.config.connector import CLASSES
from heliograph.config.flow_keys import EMIT_CHECKPOINTS
from heliograph.config.keys import TABLE
from heliograph.config.names import ROLES
from heliograph.config.placeholders import PROVIDER_CLASSES
from heliograph.config.properties_text import properties_text
from heliograph.config.types import Scope, split_list
from heliograph.config.worker_targets import BYTES_CONVERTER, CONVERTERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.connector import Kind
    from heliograph.config.parts import ClusterParts, FlowParts, Parts

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAMED_PROVIDER = re.compile(r"\$\{([a-z]+):")
_FILES: dict[str, Kind] = {"msc": "source", "cpc": "checkpoint", "hbc": "heartbeat"}
_SCOPES: dict[Kind, Scope] = {"source": Scope.SOURCE, "checkpoint": Scope.CHECKPOINT, "heartbeat": Scope.HEARTBEAT}


def connector_files(parts: Parts, notes: list[str]) -> dict[str, str]:
    """File names and texts; `notes` gets what the form cannot say."""
    files = {}
    kinds: set[str] = set()
    sources = [each.flow.source for each in parts.flows]
    for each in parts.flows:
        label = each.flow.source if sources.count(each.flow.source) == 1 else f"{each.flow.source}-{each.flow.target}"
        for short, kind in _FILES.items():
            name = f"mm2-{short}-{label}"
            config = {key: _with_provider(value) for key, value in connector_config(parts, each, kind, name).items()}
            files[f"{name}.json"] = json.dumps(config, indent=2) + "\n"
            kinds |= {found for value in config.values() for found in _NAMED_PROVIDER.findall(value)}
        if each.is_paused:
            notes.append(f"{each.flow} is paused; create its connectors with initial_state PAUSED, or pause them.")
    for target in parts.targets:
        name = "connect-distributed" + (f"-{target}" if len(parts.targets) > 1 else "")
        files[f"{name}.properties"] = _worker(parts, target, kinds, notes)
    return files


def connector_config(parts: Parts, each: FlowParts, kind: Kind, name: str) -> dict[str, str]:
    """One connector of a flow, as it is given to Connect."""
    source, target = each.flow
    scope = _SCOPES[kind]
    head = {"name": name, "connector.class": CLASSES[kind]}
    config = {"source.cluster.alias": source, "target.cluster.alias": target}
    for side, alias in (("source", source), ("target", target)):
        config |= _connection(parts.clusters[alias], side)
    config |= each.clients
    if scope is Scope.SOURCE:
        written = {key.removeprefix("target."): value for key, value in config.items() if "target.producer." in key}
        overrides = {key.replace("producer.", "producer.override.", 1): value for key, value in written.items()}
        config = overrides | config
    else:
        config = {key: value for key, value in config.items() if not key.startswith("producer.override.")}
    config |= dict.fromkeys(CONVERTERS, BYTES_CONVERTER) | each.keys_of(scope)
    if scope is Scope.CHECKPOINT and each.connector.get(EMIT_CHECKPOINTS, "true").strip().lower() == "false":
        config["enabled"] = "false"  # Java refuses a connector that is on and emits nothing
    return head | config


def _connection(cluster: ClusterParts, side: str) -> dict[str, str]:
    """How a connector reaches one of its clusters: only connection keys are read behind `source.cluster.`."""
    config = {}
    for key, value in cluster.plain.items():
        if key in TABLE and TABLE[key].scope & Scope.CLIENT:
            config[f"{side}.cluster.{key}"] = value
        else:
            config |= {f"{side}.{role}.{key}": value for role in ROLES}
    for role in ROLES:
        config |= {f"{side}.{role}.{key}": value for key, value in cluster.roles[role].items()}
    return config


def _with_provider(value: str) -> str:
    """Only files have `${NAME}`; Connect knows the same as `${env:NAME}`."""
    return _VARIABLE.sub(r"${env:\1}", value)


def _declarations(kinds: set[str], declared: Mapping[str, str]) -> dict[str, str]:
    """The config providers that connectors use: a worker looks up only what it declares."""
    known = split_list(declared.get("config.providers", ""))
    missing = [kind for kind in PROVIDER_CLASSES if kind in kinds and kind not in known]
    if not missing:
        return dict(declared)
    classes = {f"config.providers.{kind}.class": PROVIDER_CLASSES[kind] for kind in missing}
    return {**declared, "config.providers": ",".join((*known, *missing)), **classes}


def _worker(parts: Parts, target: str, kinds: set[str], notes: list[str]) -> str:
    """The worker of a target. Connect keeps the progress of all its connectors in one topic, MM2 has one per source."""
    sources = [each.flow.source for each in parts.into(target)]
    cluster = parts.clusters[target]
    own = f"mm2-{{}}.{sources[0]}.internal" if len(sources) == 1 else f"mm2-{{}}.{target}.internal"
    names = {
        "group.id": f"{sources[0] if len(sources) == 1 else target}-mm2",
        "offset.storage.topic": own.format("offsets"),
        "config.storage.topic": own.format("configs"),
        "status.storage.topic": own.format("status"),
    }
    if len(sources) > 1 and "offset.storage.topic" not in cluster.worker:
        notes.append(
            f"the flows into {target} kept their progress in a topic each, such as mm2-offsets.{sources[0]}.internal;"
            f" their worker has one for all, {names['offset.storage.topic']}."
        )
    plain = {key: value for key, value in cluster.plain.items() if key in TABLE and TABLE[key].scope & Scope.CLIENT}
    converters = dict.fromkeys(CONVERTERS, BYTES_CONVERTER)
    # Records are written by the worker's producer, which has nothing of the worker's own connection but its servers.
    producer = {f"producer.{key}": value for key, value in plain.items() if key != "bootstrap.servers"}
    written = {**plain, **producer, **names, **converters, **cluster.worker}
    values = {key: _with_provider(value) for key, value in written.items()} | _declarations(kinds, parts.providers)
    return properties_text(values.items(), [f"Worker for the connectors that write to {target}."])
