"""Which ACLs a flow needs: by its settings, for each of its clients, the fewest that say it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.validate.dedicated_file import load
from heliograph.config.validate.worker_file import load_worker
from heliograph.errors import ConfigError
from heliograph.mirror.acls.acl import CLUSTER, GROUP, TOPIC, Acl, Resource, fewest_acls
from heliograph.mirror.acls.name_prefixes import Names
from heliograph.operations.needed_acls import needed_acls
from heliograph.operations.principals import parse_principals
from tests.unit.config.test_connector_config import NoLookup

BASE = """
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
emit.heartbeats.enabled = false
heartbeats.replication.enabled = false
"""
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def config_of(*lines: str) -> MirrorMakerConfig:
    return load(BASE + "\n".join(lines) + "\n", NoLookup())


def needs_of(*lines: str, **principals: str) -> dict[str, set[str]]:
    """`alias principal` to the ACLs, each as `OPERATION name`, with a star after a prefix."""
    granted = needed_acls([config_of(*lines)], principals)
    return {f"{each.login.cluster} {each.login.principal}": {short(acl) for acl in each.acls} for each in granted}


def short(acl: Acl) -> str:
    names = acl.resource.names
    star = "" if names.is_whole else "*"
    kind = "" if acl.resource.kind in (TOPIC, CLUSTER) else f"{acl.resource.kind.lower()} "
    return f"{acl.operation} {kind}{names.start}{star}"


SOURCE = {
    "DESCRIBE kafka-cluster",
    "READ orders",
    "DESCRIBE_CONFIGS orders",
    "CREATE mm2-offset-syncs.B.internal",
    "READ mm2-offset-syncs.B.internal",
    "WRITE mm2-offset-syncs.B.internal",
    "DESCRIBE group *",
}
TARGET = {
    "ALTER kafka-cluster",
    "CREATE A.orders",
    "ALTER A.orders",
    "ALTER_CONFIGS A.orders",
    "READ A.orders",
    "WRITE A.orders",
    "CREATE mm2-offsets.A.internal",
    "READ mm2-offsets.A.internal",
    "WRITE mm2-offsets.A.internal",
    "CREATE A.checkpoints.internal",
    "READ A.checkpoints.internal",
    "WRITE A.checkpoints.internal",
    "CREATE heliograph-losses.A.internal",
    "READ heliograph-losses.A.internal",
    "WRITE heliograph-losses.A.internal",
}
S, T = "A User:ANONYMOUS", "B User:ANONYMOUS"


def test_one_topic() -> None:
    assert needs_of("A->B.topics = orders") == {S: SOURCE, T: TARGET}


def test_a_prefix_stays_one() -> None:
    needs = needs_of("A->B.topics = orders-.*")
    assert {"READ orders-*", "DESCRIBE_CONFIGS orders-*"} <= needs[S]
    assert {"CREATE A.orders-*", "WRITE A.orders-*"} <= needs[T]


def test_the_prefix_of_all_copies_also_covers_the_checkpoints() -> None:
    needs = needs_of("A->B.topics = .*")
    assert "READ *" in needs[S]
    assert {"CREATE A.*", "READ A.*", "WRITE A.*"} <= needs[T]
    assert not any("checkpoints" in need for need in needs[T])


@pytest.mark.parametrize(
    ("line", "gone", "new"),
    [
        ("A->B.sync.topic.acls.enabled = false", {"DESCRIBE kafka-cluster", "ALTER kafka-cluster"}, set()),
        ("A->B.sync.topic.configs.enabled = false", {"ALTER_CONFIGS A.orders"}, set()),
        (
            "A->B.emit.offset-syncs.enabled = false",
            {need for need in SOURCE | TARGET if "syncs" in need or "checkpoints" in need or "group" in need},
            set(),
        ),
        (
            "A->B.emit.checkpoints.enabled = false",
            {need for need in SOURCE | TARGET if "checkpoints" in need or "group" in need}
            | {"READ mm2-offset-syncs.B.internal"},
            set(),
        ),
        ("A->B.sync.group.offsets.enabled = true", set(), {"READ group *"}),
        ("A->B.groups = g, team-.*", {"DESCRIBE group *"}, {"DESCRIBE group g", "DESCRIBE group team-*"}),
        (
            "B.exactly.once.source.support = enabled",
            {"READ A.orders"},
            {"WRITE transactional_id A-mm2-MirrorSourceConnector-*"},
        ),
        (
            "A->B.offset-syncs.topic.location = target",
            {need for need in SOURCE if "syncs" in need},
            {f"{operation} mm2-offset-syncs.A.internal" for operation in ("CREATE", "READ", "WRITE")},
        ),
        (
            "replication.policy.class = IdentityReplicationPolicy",
            {need for need in TARGET if "A.orders" in need},
            {need.replace("A.orders", "orders") for need in TARGET if "A.orders" in need},
        ),
        (
            "B.offset.storage.topic = progress",
            {n for n in TARGET if "mm2-offsets" in n},
            {"CREATE progress", "READ progress", "WRITE progress"},
        ),
        (
            "A->B.heartbeats.replication.enabled = true",
            set(),
            {
                "READ heartbeats",
                "DESCRIBE_CONFIGS heartbeats",
                "CREATE A.heartbeats",
                "ALTER_CONFIGS A.heartbeats",
                "READ A.heartbeats",
                "WRITE A.heartbeats",
            },
        ),
        ("A->B.emit.heartbeats.enabled = true", set(), {"CREATE heartbeats", "WRITE heartbeats"}),
    ],
)
def test_each_setting_adds_and_takes_what_it_is_about(line: str, gone: set[str], new: set[str]) -> None:
    needs = needs_of("A->B.topics = orders", line)
    assert needs[S] | needs[T] == (SOURCE | TARGET) - gone | new


def test_an_excluded_name_is_not_needed() -> None:
    needs = needs_of("A->B.topics = orders, bills", "A->B.topics.exclude = bills")
    assert not any("bills" in need for need in needs[S] | needs[T])


def test_copies_that_a_map_names() -> None:
    needs = needs_of(
        "A->B.topics = orders, (bills|x)-.*",
        "replication.policy.class = RenameReplicationPolicy",
        "heliograph.rename.topics = orders=eu-orders, bills-(.*)=eu-bills-$1",
        "A->B.emit.checkpoints.enabled = false",
    )
    written = {need.removeprefix("WRITE ") for need in needs[T] if need.startswith("WRITE ")}
    assert written == {"eu-orders", "eu-bills-*", "A.bills-*", "A.x-*"} | {
        "mm2-offsets.A.internal",
        "heliograph-losses.A.internal",
    }


def test_heartbeats_of_heartbeats_over_three_clusters() -> None:
    lines = ("clusters = A, B, C", "C.bootstrap.servers = c:9092", "B->C.enabled = true", "topics = orders")
    needs = needs_of(*lines, "heartbeats.replication.enabled = true")
    assert {"READ heartbeats", "READ A.heartbeats"} <= needs["B User:ANONYMOUS"]
    assert {"WRITE B.heartbeats", "WRITE B.A.heartbeats"} <= needs["C User:ANONYMOUS"]


def test_heartbeats_go_both_ways_even_where_records_do_not() -> None:
    needs = needs_of("A->B.topics = orders", "emit.heartbeats.enabled = true")
    assert {"CREATE heartbeats", "WRITE heartbeats"} <= needs[S]
    assert {"CREATE heartbeats", "WRITE heartbeats"} <= needs[T]


def test_a_login_per_role_gets_only_what_the_role_does() -> None:
    logins = [
        line
        for alias in "AB"
        for line in (
            f"{alias}.security.protocol = SASL_PLAINTEXT",
            f"{alias}.sasl.mechanism = PLAIN",
            *(
                f'{alias}.{role}.sasl.jaas.config = {PLAIN} username="{role}" password="p";'
                for role in ("admin", "consumer", "producer")
            ),
        )
    ]
    needs = needs_of("A->B.topics = orders", *logins)
    assert needs["A User:consumer"] == {"READ orders"}
    assert needs["A User:producer"] == {"WRITE mm2-offset-syncs.B.internal"}
    assert {"DESCRIBE orders", "DESCRIBE_CONFIGS orders"} <= needs["A User:admin"]
    assert needs["B User:producer"] == {"READ A.orders", "WRITE A.orders", "WRITE mm2-offsets.A.internal"}
    assert "WRITE A.orders" not in needs["B User:admin"]


def test_a_principal_that_only_brokers_know_can_be_said() -> None:
    lines = ("A->B.topics = orders", "A.security.protocol = SASL_SSL", "A.sasl.mechanism = GSSAPI")
    lines = (*lines, "A.sasl.kerberos.service.name = kafka")
    granted = needed_acls([config_of(*lines)], {})
    (unknown,) = (each for each in granted if not each.is_known)
    assert unknown.login.principal == "User:<the user of A.sasl.mechanism>"
    assert "with GSSAPI by their own rules; so the principal is not known" in unknown.doubt
    assert "--principal A=User:name" in unknown.doubt
    assert "A User:CN=mirror" in needs_of(*lines, **parse_principals(["A=User:CN=mirror"]))
    assert parse_principals(["B.producer=mm2"]) == {"B.producer": "User:mm2"}
    with pytest.raises(ConfigError, match="--principal nonsense: write it as CLUSTER=User:name"):
        parse_principals(["nonsense"])


def test_a_connector_writes_with_its_worker() -> None:
    """Records are written by the worker's producer with the connector's login, source offsets by the worker itself."""
    text = f"""
        bootstrap.servers = b:9092
        group.id = connect
        config.storage.topic = configs
        offset.storage.topic = offsets
        status.storage.topic = statuses
        security.protocol = SASL_PLAINTEXT
        sasl.mechanism = PLAIN
        sasl.jaas.config = {PLAIN} username="worker" password="p";
    """
    worker = load_worker(text, NoLookup())
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    login["sasl.jaas.config"] = f'{PLAIN} username="payments" password="p";'
    raw = {
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "A",
        "source.cluster.bootstrap.servers": "a:9092",
        "target.cluster.alias": "B",
        "target.cluster.bootstrap.servers": "b:9092",
        "topics": "payments-.*",
        "sync.topic.acls.enabled": "false",
        "heartbeats.replication.enabled": "false",
        **{f"target.cluster.{key}": value for key, value in login.items()},
        **{f"producer.override.{key}": value for key, value in login.items()},
    }
    granted = needed_acls([worker.connector("payments", raw)], {}, worker)
    needs = {f"{each.login.cluster} {each.login.principal}": {short(acl) for acl in each.acls} for each in granted}
    stores = {
        f"{operation} {topic}"
        for topic in ("configs", "offsets", "statuses")
        for operation in ("CREATE", "READ", "WRITE")
    }
    assert needs["worker User:worker"] == stores | {"READ group connect"}
    fenced = load_worker(f"{text}\nexactly.once.source.support = preparing", NoLookup())
    (granted_to_worker,) = needed_acls([], {}, fenced)
    more = {short(acl) for acl in granted_to_worker.acls} - needs["worker User:worker"]
    assert more == {"WRITE transactional_id connect-cluster-connect"}
    copies = {f"{operation} A.payments-*" for operation in ("CREATE", "ALTER", "ALTER_CONFIGS", "READ", "WRITE")}
    losses = {f"{operation} heliograph-losses.A.internal" for operation in ("CREATE", "READ", "WRITE")}
    assert needs["B User:payments"] == copies | losses
    assert "CREATE mm2-offset-syncs.B.internal" in needs["A User:ANONYMOUS"]
    assert not any("group" in need for need in needs["A User:ANONYMOUS"]), "the source connector follows no groups"


_names = st.builds(Names, st.text("ab", max_size=3), st.booleans())
_resources = st.builds(Resource, st.sampled_from([TOPIC, GROUP]), _names)
_operations = st.sampled_from(["READ", "WRITE", "CREATE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"])
_acls = st.lists(st.builds(Acl, _operations, _resources, st.just(("why",))), max_size=12)


@given(_acls)
def test_the_least_says_the_same_and_nothing_twice(acls: list[Acl]) -> None:
    fewest = fewest_acls(acls)
    assert all(any(one.includes(acl) for one in fewest) for acl in acls)
    assert all(any(acl.includes(one) for acl in acls) for one in fewest)
    assert not any(one.includes(other) for one in fewest for other in fewest if one is not other)
    assert fewest_acls(reversed(fewest)) == fewest
