"""The dedicated-mode file: the users' own documents load, overlays win as in MM2, mistakes are told in sentences."""

from __future__ import annotations

import pytest

from heliograph.config import keys
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.keys import client_keys
from heliograph.config.validate.dedicated_file import examine, load
from heliograph.errors import ConfigError
from heliograph.kafka.security.security_settings import make_security
from heliograph.model import Flow
from tests.support.config_files import FakeLookup, minimal
from tests.support.diagnostics import texts

FLOW = Flow("source", "target")

EVENT_STREAMS_TO_LOCAL = """\
clusters=source, target
source.bootstrap.servers=broker-3.eventstreams.example:9093,broker-1.eventstreams.example:9093
source.security.protocol=SASL_SSL
source.ssl.protocol=TLSv1.2
source.sasl.mechanism=PLAIN
source.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="token" \\
    password="985...";
target.bootstrap.servers=kafka1:9092,kafka2:9093,kafka3:9094
# enable and configure individual replication flows
source->target.enabled=true
source->target.topics=orders
"""
STRIMZI_TO_LOCAL = """\
clusters=source, target
source.bootstrap.servers=my-cluster.example:443
source.security.protocol=SSL
source.ssl.truststore.password=password
source.ssl.truststore.location=/home/truststore.jks
target.bootstrap.servers=kafka1:9092,kafka2:9093,kafka3:9094
# enable and configure individual replication flows
source->target.enabled=true
source->target.topics=orders
"""
LOCAL_TO_EVENT_STREAMS = """\
clusters=source, target
source.bootstrap.servers=${KAFKA_SOURCE_BROKERS}
target.bootstrap.servers=${KAFKA_TARGET_BROKERS}
target.security.protocol=SASL_SSL
target.ssl.protocol=TLSv1.2
target.ssl.endpoint.identification.algorithm=https
target.sasl.mechanism=PLAIN
target.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="token" \
password=${KAFKA_TARGET_APIKEY};
# enable and configure individual replication flows
source->target.enabled=true
source->target.topics=products
tasks.max=10
"""


def read(text: str, lookup: FakeLookup | None = None) -> MirrorMakerConfig:
    return load(text, lookup or FakeLookup())


AB = Flow("A", "B")


def test_event_streams_to_local_loads_as_written() -> None:
    config = read(EVENT_STREAMS_TO_LOCAL)
    assert config.flows == (FLOW,)
    assert texts(config.warnings) == ()
    assert config.settings(FLOW)[keys.TOPICS] == ("orders",)
    security = make_security(config.client("source", "consumer", FLOW), "source")
    assert (security.protocol, security.mechanism, security.username, security.password) == (
        "SASL_SSL",
        "PLAIN",
        "token",
        "985...",
    )
    assert make_security(config.client("target", "producer", FLOW), "target").protocol == "PLAINTEXT"


def test_strimzi_to_local_loads_as_written() -> None:
    config = read(STRIMZI_TO_LOCAL)
    assert config.client("source", "consumer", FLOW)[client_keys.SSL_TRUSTSTORE_LOCATION] == "/home/truststore.jks"
    assert texts(config.warnings) == ()


def test_local_to_event_streams_takes_its_variables_from_the_environment() -> None:
    variables = {
        "KAFKA_SOURCE_BROKERS": "k1:9092,k2:9092",
        "KAFKA_TARGET_BROKERS": "es:9093",
        "KAFKA_TARGET_APIKEY": "s3cret",
    }
    config = read(LOCAL_TO_EVENT_STREAMS, FakeLookup(variables))
    assert config.client("source", "consumer", FLOW)[client_keys.BOOTSTRAP_SERVERS] == ("k1:9092", "k2:9092")
    assert make_security(config.client("target", "producer", FLOW), "target").password == "s3cret"
    assert config.settings(FLOW)[keys.TASKS_MAX] == 10
    assert "s3cret" not in repr(make_security(config.client("target", "producer", FLOW), "target"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "clusters: the file does not list its clusters"),
        ("clusters=A,B\nA->B.enabled=true\nA.bootstrap.servers=a:1", "'B' has no bootstrap servers"),
        ("clusters=A,B\nA->C.enabled=true", "C is not in 'clusters', which lists A, B"),
        ("clusters=A,B\nX->B.topics=t", "X is not in 'clusters'"),
        ("clusters=A,B\nA.bootstrap.servers=a:1", "No source->target replication flow is enabled"),
        ("clusters=A,A", "A is listed twice"),
        (minimal("A->B.replication.factor=two"), "replication.factor: 'two' is not a whole number"),
        (minimal("A->B.offset-syncs.topic.location=moon"), "must be one of source, target"),
        (minimal("A.security.protocol=SLS"), "A.security.protocol: 'SLS' must be one of PLAINTEXT"),
        (minimal("A.ssl.key.password=${NOPE}"), "the environment variable NOPE is not set"),
        (minimal("A.x=${file:/f.properties:k}"), "the file /f.properties cannot be read"),
        (minimal("A.x=${dir:/d:f}"), "no readable file 'f' in the folder /d"),
        (minimal("A.x=${vault:a:b}"), "config provider 'vault'"),
        (minimal("config.providers=v", "config.providers.v.class=com.acme.Vault"), "'Vault' is not a config provider"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert any(words in problem for problem in texts(caught.value.problems)), texts(caught.value.problems)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read(minimal("A->B.replication.factor=two", "A->B.tasks.max=many", "B.security.protocol=no"))
    assert len(caught.value.problems) == 3


def test_placeholders_of_kafkas_config_providers() -> None:
    files = {"/run/secrets.properties": "user=alice\npassword=p\\=w", "/run/d/token": "abc"}
    text = minimal(
        "config.providers=file,d",
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider",
        "config.providers.d.class=org.apache.kafka.common.config.provider.DirectoryConfigProvider",
        "config.providers.d.param.allowed.paths=/run/d,/other",
        "A.client.id=${file:/run/secrets.properties:user}-${env:REGION}",
        "A.ssl.key.password=${file:/run/secrets.properties:password}",
        "B.ssl.key.password=${d:/run/d:token}",
    )
    config = read(text, FakeLookup({"REGION": "eu"}, files))
    assert config.client("A", "consumer").values["client.id"] == "alice-eu"
    assert config.client("A", "consumer")[client_keys.SSL_KEY_PASSWORD] == "p=w"
    assert config.client("B", "consumer")[client_keys.SSL_KEY_PASSWORD] == "abc"


def test_a_path_outside_of_the_allowed_ones_is_refused() -> None:
    text = minimal(
        "config.providers=d",
        "config.providers.d.class=DirectoryConfigProvider",
        "config.providers.d.param.allowed.paths=/run/d",
        "A.ssl.key.password=${d:/run/d/../e:token}",
    )
    with pytest.raises(ConfigError, match=r"outside of the provider's allowed\.paths"):
        read(text, FakeLookup(files={"/run/d/../e/token": "x"}))


def test_a_secret_that_changes_is_seen_by_the_next_client() -> None:
    lookup = FakeLookup({"PW": "old"})
    config = read(minimal("A.ssl.key.password=${PW}"), lookup)
    lookup.variables["PW"] = "new"
    assert config.client("A", "consumer")[client_keys.SSL_KEY_PASSWORD] == "new"


def test_flow_keys_win_over_top_level_keys() -> None:
    config = read(minimal("topics=all", "A->B.topics=some", "replication.factor=5"))
    assert config.settings(AB)[keys.TOPICS] == ("some",)
    assert config.settings(AB)[keys.REPLICATION_FACTOR] == 5


def test_worker_keys_come_from_the_target() -> None:
    config = read(minimal("B.offset.flush.interval.ms=5000", "A.offset.flush.interval.ms=7000"))
    assert config.settings(AB)[keys.OFFSET_FLUSH_INTERVAL_MS] == 5000


def test_client_keys_overlay_from_general_to_particular() -> None:
    config = read(
        minimal(
            "security.protocol=SSL",
            "A.request.timeout.ms=1",
            "A.consumer.request.timeout.ms=2",
            "B.security.protocol=PLAINTEXT",
            "A->B.consumer.fetch.max.bytes=9",
        )
    )
    assert config.client("A", "consumer", AB)[client_keys.REQUEST_TIMEOUT_MS] == 2
    assert config.client("A", "admin", AB)[client_keys.REQUEST_TIMEOUT_MS] == 1
    assert config.client("A", "consumer", AB)[client_keys.SECURITY_PROTOCOL] == "SSL"
    assert config.client("B", "producer", AB)[client_keys.SECURITY_PROTOCOL] == "PLAINTEXT"
    assert config.client("A", "consumer", AB)[client_keys.FETCH_MAX_BYTES] == 9


def test_only_the_flows_into_the_asked_targets_run() -> None:
    text = minimal("B->A.enabled=true")
    assert load(text, FakeLookup()).flows == (AB, Flow("B", "A"))
    assert load(text, FakeLookup(), ["A"]).flows == (Flow("B", "A"),)
    with pytest.raises(ConfigError, match="there is no such cluster"):
        load(text, FakeLookup(), ["C"])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("A->B.topcs=x", "Did you mean 'A->B.topics'?"),
        ("replication.facter=1", "Did you mean 'replication.factor'?"),
        ("A.bootstap.servers=x", "Did you mean 'A.bootstrap.servers'?"),
        ("C.bootstrap.servers=x", "unknown key"),
        ("A->B.topics.blacklist=x", "it is read as 'A->B.topics.exclude'"),
        ("use.defaults.from=source", "Java MM2 ignores this key at the top of the file"),
        ("A->B.enable=true", "Did you mean 'A->B.enabled'?"),
        ("A->B.emit.heartbeats=false", "Did you mean 'A->B.emit.heartbeats.enabled'?"),
        ("A->B.emit.checkpoints=false", "Did you mean 'A->B.emit.checkpoints.enabled'?"),
        ("offset.flush.interval.ms=5", "write it as in 'B.offset.flush.interval.ms'"),
        ("group.id=g", "write it as in 'B.group.id'"),
        ("exactly.once.support=required", "write it as in 'A->B.exactly.once.support'"),
        ("transforms.x.type=Y", "write it as in 'A->B.transforms.x.type'"),
        ("topic.creation.default.partitions=1", "write it as in 'A->B.topic.creation.default.partitions'"),
        ("consumer.isolation.level=read_committed", "write it as in 'A.consumer.isolation.level'"),
        ("isolation.level=read_committed", "write it as in 'A.consumer.isolation.level'"),
        ("bootstrap.servers=a:1", "write it as in 'A.bootstrap.servers'"),
        ("A.isolation.level=read_committed", "write it as in 'A.consumer.isolation.level'"),
        ("A.topics=t", "write it as in 'A->B.topics'"),
        ("A.clusters=t", "write it as in 'clusters'"),
        ("A->B.group.id=g", "write it as in 'B.group.id'"),
        ("A->B.security.protocol=SSL", "write it as in 'A.security.protocol'"),
        ("A->B.isolation.level=read_committed", "write it as in 'A->B.consumer.isolation.level'"),
        ("A->B.listeners=x", "write it as in 'B.listeners'"),
        ("A.consumer.linger.ms=5", "unknown key after 'A.consumer.'"),
        ("A.consumer.fetch.max.byte=5", "Did you mean 'A.consumer.fetch.max.bytes'?"),
        ("A->B.source.consumer.fetch.max.byte=5", "Did you mean 'A->B.source.consumer.fetch.max.bytes'?"),
        ("A->B.admin.override.retries=5", "MM2 has no admin that this could override"),
        ("A->A.topics=t", "a cluster is not replicated to itself"),
        ("A->B.topics=x\nA->B.topics=y", "written on lines 5 and 6; only the last one counts"),
        ("topics.exclude=x\ntopics.blacklist=y", "'topics.exclude' is there too and counts alone"),
    ],
)
def test_a_doubtful_name_is_warned_about(line: str, words: str) -> None:
    (warning,) = texts(read(minimal(line)).warnings)
    assert words in warning


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["A->B.topcis=orders"], "Did you mean 'A->B.topics'? Until then 'topics' stays '.*': every topic."),
        (["topcis=orders"], "Did you mean 'topics'? Until then 'topics' stays '.*': every topic."),
        (["A->B.grups=g"], "Did you mean 'A->B.groups'? Until then 'groups' stays '.*': every group."),
        (["A->B.topcis=orders", "topics=orders"], "Did you mean 'A->B.topics'?"),
        (["A->B.topcis=orders", "A->B.topics=orders"], "Did you mean 'A->B.topics'?"),
        (["topcis=orders", "A->B.topics=orders"], "Did you mean 'topics'?"),
        (["A->B.topics.exlude=x"], "Did you mean 'A->B.topics.exclude'?"),
    ],
)
def test_a_typo_that_makes_a_flow_copy_everything_says_so(lines: list[str], words: str) -> None:
    (warning,) = texts(read(minimal(*lines)).warnings)
    assert warning.endswith(words)


def test_an_old_name_still_works() -> None:
    assert read(minimal("A->B.topics.blacklist=x")).settings(AB)[keys.TOPICS_EXCLUDE] == ("x",)
    both = read(minimal("A->B.topics.exclude=x", "A->B.topics.blacklist=y"))
    assert both.settings(AB)[keys.TOPICS_EXCLUDE] == ("x",)


def test_a_class_of_the_users_may_have_keys_of_its_own() -> None:
    lines = ("topic.filter.class=acme.filters:Ours", "A->B.acme.list=x", "A->B.topcs=x")
    (warning,) = texts(read(minimal(*lines)).warnings)
    assert "Did you mean 'A->B.topics'?" in warning


def test_an_ignored_key_is_noted_with_the_reason() -> None:
    config = read(
        minimal("consumer.poll.timeout.ms=5", "B.producer.compression.type=zstd", "access.control.allow.methods=x")
    )
    assert texts(config.warnings) == ()
    assert [note.partition(": this key has no effect here: ")[0] for note in texts(config.notes)] == [
        "line 5: consumer.poll.timeout.ms",
        "line 6: B.producer.compression.type",
        "line 7: access.control.allow.methods",
    ]
    assert "copied as the source has them" in texts(config.notes)[1]


def test_an_ignored_key_that_says_what_happens_anyway_is_not_noted() -> None:
    assert (
        texts(read(minimal("B.producer.acks=all", "A.consumer.check.crcs=true", "errors.log.enable=false")).notes) == ()
    )


def test_a_cluster_without_flow_and_servers_is_only_noted() -> None:
    config = load("clusters=A,B,C\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true", FakeLookup())
    assert texts(config.warnings) == ()
    assert "'C' has no bootstrap servers and no enabled flow" in texts(config.notes)[0]
    assert config.heartbeat_flows == (AB, Flow("B", "A"))


def test_a_problem_names_its_key_as_written_and_its_line() -> None:
    with pytest.raises(ConfigError) as caught:
        read(minimal("B->A.enabled=true", "replication.factor=two"))
    assert texts(caught.value.problems) == (
        "line 6: replication.factor: 'two' is not a whole number of at most 32 bits.",
    )


def test_a_problem_comes_with_the_typo_that_may_be_its_reason() -> None:
    with pytest.raises(ConfigError) as caught:
        read("clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enable=true")
    assert "No source->target replication flow is enabled" in texts(caught.value.problems)[0]
    assert "Did you mean 'A->B.enabled'?" in texts(caught.value.warnings)[0]


def test_kinds_of_problems_do_not_hide_each_other() -> None:
    text = minimal(
        "B->A.enabled=perhaps",
        "A->B.replication.factor=two",
        "A.ssl.key.password=${NOPE}",
        "A->C.topics=t",
        "emit.offset-syncs.enabled=false",
        "A->B.offset-syncs.topic.location=target",
        "A->B.transforms=x",
        "B.producer.interceptor.classes=X",
    )
    report = examine(text, FakeLookup())
    assert [int(problem.split()[1][:-1]) for problem in texts(report.problems)] == [5, 6, 7, 8, 10, 11, 12]


@pytest.mark.parametrize(
    "line",
    [
        "A.consumer.max.poll.records=5",
        "B.producer.batch.size=5",
        "A->B.transforms.x.type=Y",
        "emit.heartbeats.interval.seconds=5",
        "offset.storage.replication.factor=1",
        "key.converter.schemas.enable=false",
        "A->B.emit.heartbeats.enabled=false",
    ],
)
def test_a_key_users_have_is_not_warned_about(line: str) -> None:
    assert texts(read(minimal(line)).warnings) == ()
