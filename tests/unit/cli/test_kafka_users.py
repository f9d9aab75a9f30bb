"""KafkaUsers of `heliograph acls`: names that Kubernetes takes, principals that Strimzi can express."""

from __future__ import annotations

import re
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from heliograph.cli.acl_texts import as_kafka_users, user_names
from heliograph.mirror.acls.acl import GROUP, THE_CLUSTER, TOPIC, TRANSACTIONAL_ID, Acl, Resource
from heliograph.mirror.acls.name_prefixes import Names
from heliograph.operations.needed_acls import ClusterLogin, Granted

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
OPERATIONS = {"Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "AlterConfigs"} | {
    "DescribeConfigs",
    "IdempotentWrite",
    "All",
}
ACLS = (
    Acl("ALTER", THE_CLUSTER, ("why",)),
    Acl("READ", Resource(TOPIC, Names("orders", is_whole=True)), ("why",)),
    Acl("DESCRIBE_CONFIGS", Resource(TOPIC, Names("orders", is_whole=True)), ("why",)),
    Acl("READ", Resource(GROUP, Names("", is_whole=False)), ("why",)),
    Acl("WRITE", Resource(TRANSACTIONAL_ID, Names("A-", is_whole=False)), ("why",)),
)


def granted(cluster: str, principal: str, *, is_known: bool = True) -> Granted:
    return Granted(ClusterLogin(cluster, ("a:1",), principal), ACLS, "" if is_known else "why", is_known)


def check_kafka_user(user: dict[str, Any]) -> None:
    """The shape of the custom resource, as its definition has it."""
    assert list(user) == ["apiVersion", "kind", "metadata", "spec"]
    assert (user["apiVersion"], user["kind"]) == ("kafka.strimzi.io/v1beta2", "KafkaUser")
    name, label = user["metadata"]["name"], user["metadata"]["labels"]["strimzi.io/cluster"]
    assert NAME.fullmatch(name) and len(name) <= 253, name
    assert LABEL.fullmatch(label) and len(label) <= 63, label
    assert set(user["spec"]) <= {"authentication", "authorization"}
    if "authentication" in user["spec"]:
        assert user["spec"]["authentication"] == {"type": "tls-external"}
        assert len(name) <= 64, "a common name"
    authorization = user["spec"]["authorization"]
    assert (set(authorization), authorization["type"]) == ({"type", "acls"}, "simple")
    for rule in authorization["acls"]:
        assert set(rule) == {"resource", "operations"}
        assert rule["operations"] and set(rule["operations"]) <= OPERATIONS
        resource = rule["resource"]
        if resource["type"] == "cluster":
            assert set(resource) == {"type"}
        else:
            assert set(resource) == {"type", "name", "patternType"}
            assert resource["type"] in ("topic", "group", "transactionalId")
            assert resource["name"] and resource["patternType"] in ("literal", "prefix")


def written(*users: Granted) -> tuple[str, list[dict[str, Any]]]:
    text = as_kafka_users(users)
    found = list(yaml.safe_load_all(text))
    for user in found:
        check_kafka_user(user)
    return text, found


_texts = st.text(max_size=300) | st.text("aA-.=,1", max_size=300) | st.sampled_from(["mirror", "a.b", "x" * 253])
_principals = st.one_of(
    _texts.map("User:{}".format), _texts.map("User:CN={}".format), _texts.map("User:CN={},O=x".format), _texts
)


@given(st.lists(_principals, max_size=8), st.text(max_size=80))
def test_any_principal_gets_a_name_of_its_own(principals: list[str], alias: str) -> None:
    names = user_names(principals)
    assert set(names) == set(principals)
    assert len({name.name for name in names.values()}) == len(names)
    text, users = written(*(granted(alias, principal) for principal in dict.fromkeys(principals)))
    assert len(users) == len(names)
    assert ("cannot express" in text) == any(name.principal != principal for principal, name in names.items())


@given(st.lists(_principals, max_size=8), st.from_regex(NAME, fullmatch=True).filter(lambda name: len(name) <= 253))
def test_a_principal_that_a_kafka_user_can_be_keeps_its_name(others: list[str], name: str) -> None:
    assert user_names([*others, f"User:{name}"])[f"User:{name}"] == (name, False)
    principal = f"User:CN={name[:64].rstrip('.-')}"
    if principal.replace("CN=", "") not in others:
        assert user_names([*others, principal])[principal].principal == principal


def test_names_are_lower_case_and_end_in_no_dot_or_dash() -> None:
    found = user_names(["User:Mirror", "User:mm2-prod.-", "User:ANONYMOUS", "User:" + "x" * 300, "User:漢字"])
    assert [name.name for name in found.values()] == ["mirror", "mm2-prod", "anonymous", "x" * 253, "user"]


def test_principals_that_map_to_one_name_do_not_collide() -> None:
    principals = ["User:Mirror", "User:CN=mirror", "User:mirror", "User:mirror-2", "User:CN=mirror,O=x"]
    assert {principal: name.name for principal, name in user_names(principals).items()} == {
        "User:Mirror": "mirror-3",
        "User:CN=mirror": "mirror-4",
        "User:mirror": "mirror",
        "User:mirror-2": "mirror-2",
        "User:CN=mirror,O=x": "mirror-5",
    }


def test_a_subject_that_is_a_common_name_alone_is_a_user_with_a_certificate() -> None:
    text, (user,) = written(granted("A", "User:CN=mirror"))
    assert user["metadata"]["name"] == "mirror"
    assert user["spec"]["authentication"] == {"type": "tls-external"}
    assert "cannot express" not in text


def test_what_a_kafka_user_cannot_express_is_said_before_it() -> None:
    text, (user,) = written(granted("A", "User:O=example, CN=mirror"))
    assert user["metadata"]["name"] == "mirror"
    words = (
        "# A KafkaUser cannot express User:O=example, CN=mirror: with this name its ACLs are given to User:CN=mirror."
    )
    assert words in text.splitlines()
    assert "subject is CN=mirror alone, or grant them with --format kafka-acls instead." in text
    text, _ = written(granted("A", "User:ANONYMOUS"))
    assert "cannot express User:ANONYMOUS: with this name its ACLs are given to User:anonymous." in text


def test_one_principal_on_two_clusters_is_one_name_in_two_namespaces() -> None:
    text, users = written(granted("A", "User:mirror"), granted("B", "User:mirror"))
    assert [user["metadata"]["name"] for user in users] == ["mirror", "mirror"]
    assert "# the KafkaUser of the cluster 'B' has the same name: apply each in the namespace of its own Kafka" in text


def test_a_user_that_is_not_known_is_to_be_filled_in() -> None:
    text, (user,) = written(granted("A", "User:<the user of A.sasl.jaas.config>", is_known=False))
    assert user["metadata"]["name"] == "the-user-of-a.sasl.jaas.config"
    assert "# the principal is not known; write the user's name in place of" in text


def test_a_name_cannot_end_its_comment() -> None:
    text, users = written(granted("A\nkind: Pod", "User:a\u2028b\x85kind: Pod\n---\n"))
    assert len(users) == 1
    assert all(line.startswith("#") for line in text.splitlines() if "Pod" in line and "name" not in line)
