"""Writes flows as KafkaMirrorMaker2 resources, one per target, in the layout of the requested version.

A key that holds nothing but the placeholder that `strimzi_auth` makes of a reference becomes that reference again. All
other security that a resource has no field for goes into `authentication: {type: custom}`. Keys that the operator does
not take at all, such as REST's listeners, are left out with a note.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from heliograph.config.formats.strimzi_auth import CUSTOM_PREFIXES, PASSWORD_TYPES
from heliograph.config.formats.strimzi_fields import is_forbidden
from heliograph.config.keys.table import Scope

if TYPE_CHECKING:
    from heliograph.config.formats.connector_parts import FlowParts, Parts


_REFERENCE = r"\$\{dir:([^}]*)/([^}/]+):([^}:]+)\}"
_ONE_REFERENCE = re.compile(_REFERENCE)
_JAAS = re.compile(rf'(\S+) required username="((?:[^"\\]|\\.)*)" password="{_REFERENCE}";')
_CONNECTORS = {
    "sourceConnector": Scope.SOURCE,
    "checkpointConnector": Scope.CHECKPOINT,
    "heartbeatConnector": Scope.HEARTBEAT,
}
_PATTERNS = {
    "topics": "topicsPattern",
    "topics.exclude": "topicsExcludePattern",
    "groups": "groupsPattern",
    "groups.exclude": "groupsExcludePattern",
}
_TARGET_FIELDS = {  # of version v1, which has no defaults for them
    "group.id": ("groupId", "mirrormaker2-cluster"),
    "config.storage.topic": ("configStorageTopic", "mirrormaker2-cluster-configs"),
    "offset.storage.topic": ("offsetStorageTopic", "mirrormaker2-cluster-offsets"),
    "status.storage.topic": ("statusStorageTopic", "mirrormaker2-cluster-status"),
}

# Why there is no place for a key in a resource, or what takes its place; the first that a key begins with counts.
_FORBIDDEN_BECAUSE = {
    "listeners": "REST of its workers is the operator's own",
    "rest.": "REST of its workers is the operator's own",
    "ssl.client.auth": "REST of its workers is the operator's own",
    "plugin.path": "plugins are part of its image",
    "consumer.interceptor.classes": "interceptors are set by 'tracing' of the spec",
    "producer.interceptor.classes": "interceptors are set by 'tracing' of the spec",
    "prometheus.metrics.reporter.": "metrics are set by 'metricsConfig' of the spec",
    "ssl.truststore.": "put the certificates into a Secret and name it in 'tls.trustedCertificates' of the cluster",
    "ssl.key": "put the key into a Secret and name it in 'authentication' of the cluster",
    "security.protocol": "it is chosen by 'tls' and 'authentication' of the cluster",
    "": "what there is for it are 'tls' and 'authentication' of the cluster",
}


def resource_text(parts: Parts, api_version: str, notes: list[str]) -> str:
    """One document per target; `notes` gets what the form cannot say."""
    return "---\n".join(_dumped(_resource(parts, target, api_version, notes)) for target in parts.targets)


def _dumped(data: dict[str, Any]) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=10_000)


def _resource(parts: Parts, target: str, api_version: str, notes: list[str]) -> dict[str, Any]:
    flows = parts.into(target)
    is_v1 = api_version.endswith("/v1")
    clusters = {alias: _cluster(parts, alias, notes) for alias in (*(each.flow.source for each in flows), target)}
    _add_worker(parts, clusters[target], target, notes, is_v1=is_v1)
    mirrors = []
    for each in flows:
        ends: dict[str, Any] = {"source": clusters[each.flow.source]}
        if not is_v1:
            ends = {"sourceCluster": each.flow.source, "targetCluster": target}
        mirrors.append({**ends, **_mirror(each, notes, is_v1=is_v1)})
    if is_v1:
        spec: dict[str, Any] = {"replicas": 1, "target": clusters[target], "mirrors": mirrors}
    else:
        spec = {"replicas": 1, "connectCluster": target, "clusters": list(clusters.values()), "mirrors": mirrors}
    name = re.sub(r"[^a-z0-9]+", "-", f"mirror-to-{target}".lower()).strip("-")
    return {"apiVersion": api_version, "kind": "KafkaMirrorMaker2", "metadata": {"name": name}, "spec": spec}


def _add_worker(parts: Parts, cluster: dict[str, Any], target: str, notes: list[str], *, is_v1: bool) -> None:
    """The worker's keys; its group and topics by name, since the operator's own would not hold MM2's source offsets."""
    sources = [each.flow.source for each in parts.into(target)]
    worker = dict(parts.clusters[target].worker)
    if len(sources) == 1:
        worker.setdefault("group.id", f"{sources[0]}-mm2")
        worker.setdefault("offset.storage.topic", f"mm2-offsets.{sources[0]}.internal")
    elif "offset.storage.topic" not in worker:
        notes.append(
            f"the flows into {target} kept their source offsets in a topic each, such as"
            f" mm2-offsets.{sources[0]}.internal; a resource has one for all."
        )
    if is_v1:
        for key, (field, name) in _TARGET_FIELDS.items():
            cluster[field] = worker.pop(key, name)
    worker |= parts.providers
    config = cluster.get("config", {}) | _config(target, worker, notes)
    if config:
        cluster["config"] = config


def _cluster(parts: Parts, alias: str, notes: list[str]) -> dict[str, Any]:
    cluster = parts.clusters[alias]
    keys = dict(cluster.plain)
    written: dict[str, Any] = {"alias": alias, "bootstrapServers": keys.pop("bootstrap.servers", "")}
    written |= _security(keys)
    for role, values in cluster.roles.items():
        keys |= {f"{role}.{key}": value for key, value in values.items()}
    config = _config(alias, keys, notes)
    if config:
        written["config"] = config
    return written


def _config(alias: str, keys: dict[str, str], notes: list[str]) -> dict[str, Any]:
    """Return the keys for a cluster's `config`; those that the operator does not take are left out, with a note."""
    for key in filter(is_forbidden, keys):
        why = next(why for prefix, why in _FORBIDDEN_BECAUSE.items() if key.startswith(prefix))
        note = f"{alias}.{key}: it is left out, since the operator does not take it; {why}."
        if note not in notes:  # a cluster may stand in several resources
            notes.append(note)
    return {key: _scalar(value) for key, value in keys.items() if not is_forbidden(key)}


def _security(keys: dict[str, str]) -> dict[str, Any]:
    """`tls` and `authentication`; what they say is taken out of `keys`."""
    written: dict[str, Any] = {}
    protocol = keys.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        return written
    keys.pop("security.protocol", None)
    if protocol.endswith("SSL"):
        written["tls"] = _trust(keys)
    custom = {key: keys.pop(key) for key in list(keys) if key.startswith(CUSTOM_PREFIXES)}
    is_sasl = protocol.startswith("SASL_")
    if is_sasl or custom:
        written["authentication"] = _typed(custom, is_sasl=is_sasl) or {
            "type": "custom",
            "sasl": is_sasl,
            "config": {key: _scalar(value) for key, value in custom.items()},
        }
    return written


def _trust(keys: dict[str, str]) -> dict[str, Any]:
    pieces = keys.get("ssl.truststore.certificates", "").split("\n")
    found = [_ONE_REFERENCE.fullmatch(piece) for piece in pieces]
    if keys.get("ssl.truststore.type") != "PEM" or not all(found):
        return {}
    del keys["ssl.truststore.type"], keys["ssl.truststore.certificates"]
    return {"trustedCertificates": [{"secretName": each[2], "certificate": each[3]} for each in found if each]}


def _typed(custom: dict[str, str], *, is_sasl: bool) -> dict[str, Any] | None:
    """A type of authentication that says exactly these keys by reference to a secret, if there is one."""
    mechanism, jaas = custom.get("sasl.mechanism"), _JAAS.fullmatch(custom.get("sasl.jaas.config", ""))
    if is_sasl and jaas is not None and len(custom) == 2:
        for kind, spelled in PASSWORD_TYPES.items():
            if spelled == (mechanism, jaas[1]):
                username = re.sub(r"\\(.)", r"\1", jaas[2])
                return {
                    "type": kind,
                    "username": username,
                    "passwordSecret": {"secretName": jaas[4], "password": jaas[5]},
                }
    certificate, key = (
        _ONE_REFERENCE.fullmatch(custom.get(f"ssl.keystore.{name}", "")) for name in ("certificate.chain", "key")
    )
    is_pem = custom.get("ssl.keystore.type") == "PEM" and len(custom) == 3
    if not is_sasl and certificate and key and is_pem and certificate[2] == key[2]:
        source = {"secretName": key[2], "certificate": certificate[3], "key": key[3]}
        return {"type": "tls", "certificateAndKey": source}
    return None


def _mirror(each: FlowParts, notes: list[str], *, is_v1: bool) -> dict[str, Any]:
    mirror: dict[str, Any] = {}
    for kind, scope in _CONNECTORS.items():
        config = each.keys_of(scope)
        if is_v1 and scope is Scope.HEARTBEAT:
            if config.get("emit.heartbeats.enabled", "true").strip().lower() == "true":
                notes.append(f"{each.flow}: version v1 has no heartbeatConnector; no heartbeats are written.")
            continue
        connector: dict[str, Any] = {}
        tasks = config.pop("tasks.max", None)
        if tasks is not None and re.fullmatch(r"[1-9][0-9]{0,8}", tasks.strip()) and scope is not Scope.HEARTBEAT:
            connector["tasksMax"] = int(tasks)
        elif tasks is not None and scope is Scope.SOURCE:
            notes.append(f"{each.flow}.tasks.max: '{tasks}' is no number the operator takes; it is left out.")
        if each.is_paused and scope is Scope.SOURCE:
            connector["state"] = "paused"
        config |= each.clients
        config = {key: value for key, value in config.items() if key not in _PATTERNS}
        if config:
            connector["config"] = {key: _scalar(value) for key, value in config.items()}
        mirror[kind] = connector
    for key, field in _PATTERNS.items():
        if key in each.connector:
            mirror[field] = each.connector[key]
    return mirror


def _scalar(text: str) -> str | int | bool:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text) else text
