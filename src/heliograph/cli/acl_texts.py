"""ACLs as those who grant them write them: `kafka-acls` commands, a Strimzi KafkaUser, JSON."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import yaml

from heliograph.mirror.permissions import CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from heliograph.mirror.permissions import Acl, Resource
    from heliograph.worker.permissions import Granted

_OPTIONS = {TOPIC: "--topic", GROUP: "--group", TRANSACTIONAL_ID: "--transactional-id"}
_STRIMZI_TYPES = {TOPIC: "topic", GROUP: "group", TRANSACTIONAL_ID: "transactionalId", CLUSTER: "cluster"}
_COMMON_NAME = re.compile(r"(?:^|,)\s*CN=([^,]+)", re.IGNORECASE)


def as_commands(granted: Sequence[Granted]) -> str:
    """One command per resource, with its reasons before it; for a shell."""
    return "\n".join(line for each in granted for line in _commands(each))


def _commands(granted: Granted) -> Iterator[str]:
    cluster, bootstrap, principal = granted.login
    yield f"# {principal} on the cluster '{cluster}'"
    for resource, acls in _by_resource(granted.acls).items():
        for acl in acls:
            yield f"#   {acl.operation}: {'; '.join(acl.reasons)}"
        words = ["kafka-acls", "--bootstrap-server", ",".join(bootstrap), "--add", "--allow-principal", principal]
        for acl in acls:
            words += ["--operation", _camel(acl.operation)]
        words += ["--cluster"] if resource.kind == CLUSTER else [_OPTIONS[resource.kind], resource.name]
        if resource.pattern == "PREFIXED":
            words += ["--resource-pattern-type", "prefixed"]
        yield shlex.join(words)
    yield ""


def as_kafka_users(granted: Sequence[Granted]) -> str:
    """One KafkaUser per principal and cluster; whose Kafka resource has another name than the alias changes the label.

    `authentication` is left to whoever makes the user: it is not about ACLs.
    """
    return "---\n".join(
        f"# the cluster '{each.login.cluster}': strimzi.io/cluster is the name of its Kafka resource\n"
        + yaml.safe_dump(_kafka_user(each), sort_keys=False, allow_unicode=True, width=10_000)
        for each in granted
    )


def _kafka_user(granted: Granted) -> dict[str, Any]:
    cluster, _bootstrap, principal = granted.login
    name = principal.partition(":")[2]
    common_name = _COMMON_NAME.search(name)
    return {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaUser",
        "metadata": {"name": common_name[1] if common_name else name, "labels": {"strimzi.io/cluster": cluster}},
        "spec": {
            "authorization": {
                "type": "simple",
                "acls": [
                    {"resource": _strimzi_resource(resource), "operations": [_camel(acl.operation) for acl in acls]}
                    for resource, acls in _by_resource(granted.acls).items()
                ],
            }
        },
    }


def _strimzi_resource(resource: Resource) -> dict[str, str]:
    if resource.kind == CLUSTER:
        return {"type": "cluster"}
    kind, pattern = _STRIMZI_TYPES[resource.kind], "prefix" if resource.pattern == "PREFIXED" else "literal"
    return {"type": kind, "name": resource.name, "patternType": pattern}


def as_data(granted: Sequence[Granted]) -> list[dict[str, Any]]:
    """Plain values for JSON, in Kafka's words."""
    return [
        {
            "cluster": each.login.cluster,
            "bootstrap_servers": ",".join(each.login.bootstrap),
            "principal": each.login.principal,
            "acls": [acl_data(acl) for acl in each.acls],
        }
        for each in granted
    ]


def acl_data(acl: Acl) -> dict[str, Any]:
    """One ACL as plain values."""
    return {
        "operation": acl.operation,
        "resource_type": acl.resource.kind,
        "resource_name": acl.resource.name,
        "pattern_type": acl.resource.pattern,
        "reasons": list(acl.reasons),
    }


def _by_resource(acls: Sequence[Acl]) -> dict[Resource, list[Acl]]:
    by_resource: dict[Resource, list[Acl]] = {}
    for acl in acls:
        by_resource.setdefault(acl.resource, []).append(acl)
    return by_resource


def _camel(operation: str) -> str:
    return "".join(word.capitalize() for word in operation.split("_"))
