"""ACLs as text: `kafka-acls` commands, JSON, and Strimzi's `KafkaUser` resources, one per cluster and principal.

The name of a KafkaUser determines its principal: `User:NAME`, or `User:CN=NAME` if it authenticates with a certificate.
A principal that is not a valid name in Kubernetes, or a subject with more than a CN, cannot be expressed. The nearest
valid name is written then, with a comment before it.

Invariants of `user_names`: every name is one that Kubernetes takes, no two principals share one, and a principal that a
KafkaUser can be keeps its own unless another has taken it.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from heliograph.mirror.acls.acl import CLUSTER, GROUP, TOPIC, TRANSACTIONAL_ID

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from heliograph.mirror.acls.acl import Acl, Resource
    from heliograph.operations.needed_acls import ClusterLogin, Granted


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
    """Return plain values for JSON, with Kafka's names."""
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


def called(login: ClusterLogin) -> str:
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


_TYPES = {TOPIC: "topic", GROUP: "group", TRANSACTIONAL_ID: "transactionalId", CLUSTER: "cluster"}
_WORD = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"{_WORD}(?:\.{_WORD})*")
_LABEL = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LONGEST_NAME, _LONGEST_COMMON_NAME, _LONGEST_LABEL = 253, 64, 63
_COMMON_NAME = re.compile(r"(?:^|,)\s*CN=((?:\\.|[^,+\\])+)", re.IGNORECASE)


class UserName(NamedTuple):
    """The name of a KafkaUser; `is_tls` if it authenticates with a certificate."""

    name: str
    is_tls: bool

    @property
    def principal(self) -> str:
        """Return the principal that the operator grants the ACLs to."""
        return f"User:{'CN=' if self.is_tls else ''}{self.name}"


def user_names(principals: Iterable[str]) -> dict[str, UserName]:
    """A name for each principal; those that can have their own come first."""
    wanted = {principal: _wanted(principal) for principal in dict.fromkeys(principals)}
    own = {name.principal: name.name for name in wanted.values() if name.principal in wanted}
    plain = {name for principal, name in own.items() if not wanted[principal].is_tls}
    found: dict[str, UserName] = {}
    taken = set(own.values())
    for principal, name in wanted.items():
        has_own = principal in own and not (name.is_tls and name.name in plain)
        found[principal] = name if has_own else name._replace(name=_free(name.name, taken))
        taken.add(found[principal].name)
    return found


def _wanted(principal: str) -> UserName:
    name = principal.partition(":")[2]
    common_name = _COMMON_NAME.search(name)
    if common_name is None:
        return UserName(_spelled(name, _LONGEST_NAME), is_tls=False)
    return UserName(_spelled(common_name[1], _LONGEST_COMMON_NAME), is_tls=True)


def _spelled(text: str, longest: int) -> str:
    """Return the text if it is a valid name in Kubernetes, else the nearest valid name."""
    words = re.sub(r"[^-a-z0-9.]+", "-", text.lower())[:longest].split(".")
    return ".".join(word for word in (word.strip("-") for word in words) if word) or "user"


def _free(name: str, taken: Container[str]) -> str:
    free, count = name, 1
    while free in taken:
        count += 1
        free = f"{name[: _LONGEST_COMMON_NAME - len(str(count)) - 1].rstrip('.-')}-{count}"
    return free


def as_kafka_users(granted: Sequence[Granted]) -> str:
    """Return the resources, each with comments about what it cannot express and what is left to the user."""
    names = user_names(each.login.principal for each in granted)
    return "---\n".join(
        "".join(f"{comment(line)}\n" for line in _comments(each, granted, names[each.login.principal]))
        + yaml.safe_dump(
            _kafka_user(each, names[each.login.principal]), sort_keys=False, allow_unicode=True, width=10_000
        )
        for each in granted
    )


def _comments(each: Granted, granted: Sequence[Granted], user: UserName) -> Iterator[str]:
    login = each.login
    yield f"{called(login)}: strimzi.io/cluster is the name of its Kafka resource"
    if not each.is_known:
        yield f"the principal is not known; write the user's name in place of '{user.name}'"
    elif user.principal != login.principal:
        yield f"A KafkaUser cannot express {login.principal}: with this name its ACLs are given to {user.principal}."
        yield f"{_advice(user)}, or grant them with --format kafka-acls instead."
    if user.is_tls:
        yield "tls-external: the operator makes no certificate; with tls it makes one, for the same principal"
    else:
        yield "authentication is not written: add the user's own, or the operator removes its SCRAM password"
    same = [other.login for other in granted if other is not each and other.login.principal == login.principal]
    for other in same:
        yield f"the KafkaUser of {called(other)} has the same name: apply each in the namespace of its own Kafka"


def _advice(user: UserName) -> str:
    if user.is_tls:
        return f"Give the client a certificate whose subject is CN={user.name} alone"
    return f"Let the client log in as '{user.name}'"


def _kafka_user(granted: Granted, user: UserName) -> dict[str, Any]:
    authentication = {"authentication": {"type": "tls-external"}} if user.is_tls else {}
    rules = [
        {"resource": _resource(resource), "operations": [camel(acl.operation) for acl in acls]}
        for resource, acls in by_resource(granted.acls).items()
    ]
    return {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaUser",
        "metadata": {"name": user.name, "labels": {"strimzi.io/cluster": _label(granted.login.cluster)}},
        "spec": {**authentication, "authorization": {"type": "simple", "acls": rules}},
    }


def _label(alias: str) -> str:
    is_label = _LABEL.fullmatch(alias) is not None and len(alias) <= _LONGEST_LABEL
    return alias if is_label else _spelled(alias, _LONGEST_LABEL)


def _resource(resource: Resource) -> dict[str, str]:
    if resource.kind == CLUSTER:
        return {"type": "cluster"}
    kind, pattern = _TYPES[resource.kind], "prefix" if resource.pattern == "PREFIXED" else "literal"
    return {"type": kind, "name": resource.name, "patternType": pattern}
