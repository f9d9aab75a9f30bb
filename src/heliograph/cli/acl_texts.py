"""ACLs as those who grant them write them: `kafka-acls` commands, and JSON. KafkaUsers are `kafka_users`."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from heliograph.mirror.permissions import CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from heliograph.mirror.permissions import Acl, Resource
    from heliograph.worker.logins import Granted, Login

_OPTIONS = {TOPIC: "--topic", GROUP: "--group", TRANSACTIONAL_ID: "--transactional-id"}


def as_commands(granted: Sequence[Granted]) -> str:
    """One command per resource, with its reasons before it; for a shell."""
    return "\n".join(line for each in granted for line in _commands(each))


def _commands(granted: Granted) -> Iterator[str]:
    _cluster, bootstrap, principal, _others = granted.login
    yield comment(f"{principal} on {called(granted.login)}")
    for resource, acls in by_resource(granted.acls).items():
        for acl in acls:
            yield comment(f"  {acl.operation}: {'; '.join(acl.reasons)}")
        words = ["kafka-acls", "--bootstrap-server", ",".join(bootstrap), "--add", "--allow-principal", principal]
        for acl in acls:
            words += ["--operation", camel(acl.operation)]
        words += ["--cluster"] if resource.kind == CLUSTER else [_OPTIONS[resource.kind], resource.name]
        if resource.pattern == "PREFIXED":
            words += ["--resource-pattern-type", "prefixed"]
        yield shlex.join(words)
    yield ""


def as_data(granted: Sequence[Granted]) -> list[dict[str, Any]]:
    """Plain values for JSON, in Kafka's words."""
    return [
        {
            "cluster": each.login.cluster,
            "other_aliases": list(each.login.others),
            "bootstrap_servers": ",".join(each.login.bootstrap),
            "principal": each.login.principal,
            "is_known": each.is_known,
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


def called(login: Login) -> str:
    """A cluster by its aliases."""
    others = " and ".join(f"'{alias}'" for alias in login.others)
    return f"the cluster '{login.cluster}'" + (f" (also called {others})" if others else "")


def comment(text: str) -> str:
    """One line for a shell or YAML to pass over, whatever letters the text has."""
    return "# " + "".join(letter if letter.isprintable() else " " for letter in text)


def by_resource(acls: Sequence[Acl]) -> dict[Resource, list[Acl]]:
    """The ACLs of each resource."""
    found: dict[Resource, list[Acl]] = {}
    for acl in acls:
        found.setdefault(acl.resource, []).append(acl)
    return found


def camel(operation: str) -> str:
    """An operation as tools and Strimzi write it."""
    return "".join(word.capitalize() for word in operation.split("_"))
