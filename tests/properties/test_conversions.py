"""There and back: a configuration that is written in another form and read again has the settings it had."""

from __future__ import annotations

import json
import re

import yaml
from hypothesis import given
from hypothesis import strategies as st

from heliograph.config import keys
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.formats.connector_json import BYTES_CONVERTER
from heliograph.config.formats.connector_parts import take_apart
from heliograph.config.formats.conversion import Converted, convert, read_form
from heliograph.config.keys import TABLE
from heliograph.config.resolve.overlays import ROLES
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.resolve.settings import Settings
from heliograph.config.syntax.properties import as_map, parse_properties, properties_text
from heliograph.mirror.topics.internal_topics import offsets_topic, transactional_prefix
from heliograph.model import Flow
from tests.support.config_files import FakeLookup

# What Strimzi writes about `config` of a cluster: prefixes it does not take, and the exceptions.
FORBIDDEN = (
    *("ssl.", "sasl.", "security.", "listeners", "plugin.path", "rest.", "bootstrap.servers"),
    "consumer.interceptor.classes",
    "producer.interceptor.classes",
)
ALLOWED = ("ssl.endpoint.identification.algorithm", "ssl.cipher.suites", "ssl.protocol", "ssl.enabled.protocols")
SECURITY = "org.apache.kafka.common.security"
ALIASES = ("us", "eu", "asia.1")
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="$", exclude_categories=("Cs", "Cc")), max_size=12)
# Not what decides whether a flow runs or a connector is there; those are drawn apart.
_CONNECTOR_VALUES: dict[str, st.SearchStrategy[str]] = {
    "topics": st.sampled_from(("orders", "a, b", r"x.*\.y", "")),
    "topics.exclude": st.sampled_from((r".*\.internal", "z")),
    "topics.blacklist": st.just("old"),
    "groups": st.sampled_from((".*", "g1,g2")),
    "groups.exclude": st.just("console-.*"),
    "replication.factor": st.sampled_from(("1", "-1", " 3 ")),
    "replication.policy.class": st.just("org.apache.kafka.connect.mirror.IdentityReplicationPolicy"),
    "replication.policy.separator": st.sampled_from((".", "_")),
    "tasks.max": st.sampled_from(("1", "7")),
    "sync.topic.acls.enabled": st.sampled_from(("true", "false", "FALSE")),
    "sync.group.offsets.enabled": st.sampled_from(("true", "false")),
    "emit.checkpoints.enabled": st.sampled_from(("true", "false")),
    "emit.checkpoints.interval.seconds": st.just("5"),
    "emit.heartbeats.enabled": st.sampled_from(("true", "false")),
    "emit.heartbeats.interval.seconds": st.just("3"),
    "offset.lag.max": st.just("010"),
    "offset-syncs.topic.location": st.sampled_from(("source", "target")),
    "use.defaults.from": st.just("source"),
    "consumer.poll.timeout.ms": st.just("7"),
    "heliograph.task.buffer.bytes": st.just("2000000"),
    "heliograph.on.recreated": st.sampled_from(("restart", r"staging\..*=restart, fail")),
    "metric.reporters": TEXTS,
}
_CLIENT_VALUES: dict[str, st.SearchStrategy[str]] = {
    "security.protocol": st.sampled_from(("PLAINTEXT", "SSL", "SASL_SSL", "SASL_PLAINTEXT")),
    "ssl.truststore.type": st.sampled_from(("PEM", "JKS")),
    "ssl.truststore.certificates": st.sampled_from(
        ("${dir:/s/ca:ca.crt}", "${dir:/s/ca:a}\n${dir:/s/b:b}", "PEM\ntext")
    ),
    "ssl.truststore.location": TEXTS,
    "ssl.keystore.type": st.just("PEM"),
    "ssl.keystore.key": st.just("${dir:/s/user:user.key}"),
    "ssl.keystore.certificate.chain": st.sampled_from(("${dir:/s/user:user.crt}", "${dir:/s/other:user.crt}")),
    "ssl.endpoint.identification.algorithm": st.sampled_from(("", "https")),
    "sasl.mechanism": st.sampled_from(("PLAIN", "SCRAM-SHA-512")),
    "sasl.jaas.config": st.sampled_from(
        (
            f'{SECURITY}.plain.PlainLoginModule required username="u\\"" password="${{dir:/s/p:pw}}";',
            f'{SECURITY}.scram.ScramLoginModule required username="u" password="${{dir:/s/p:pw}}";',
            f"{SECURITY}.plain.PlainLoginModule required username=u password=${{PASSWORD}};",
        )
    ),
}
_ROLE_VALUES: dict[str, st.SearchStrategy[str]] = {
    "request.timeout.ms": st.sampled_from(("1000", "2000")),
    "ssl.endpoint.identification.algorithm": st.sampled_from(("", "https")),
    "client.rack": TEXTS,
    "max.request.size": st.just("99"),
    "isolation.level": st.sampled_from(("read_committed", "read_uncommitted")),
    "bootstrap.servers": st.just("elsewhere:1"),
}
_WORKER_VALUES: dict[str, st.SearchStrategy[str]] = {
    "offset.flush.interval.ms": st.just("9"),
    "offset.storage.topic": st.just("progress"),
    "offset.storage.replication.factor": st.just("-1"),
    "group.id": st.just("workers"),
    "exactly.once.source.support": st.just("enabled"),
    "listeners": st.just("http://0.0.0.0:8083"),
    "rest.advertised.port": st.just("8083"),
    "plugin.path": st.just("/plugins"),
}


def some(draw: st.DrawFn, values: dict[str, st.SearchStrategy[str]], prefix: str) -> dict[str, str]:
    names = draw(st.lists(st.sampled_from(sorted(values)), max_size=4, unique=True))
    return {prefix + name: draw(values[name]) for name in names}


@st.composite
def files(draw: st.DrawFn) -> dict[str, str]:
    """A dedicated-mode file with something at every place that the overlay rules know."""
    pairs = [Flow(a, b) for a in ALIASES for b in ALIASES if a != b]
    flows = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=3, unique=True))
    raw = {"clusters": ", ".join(ALIASES)} | {f"{flow}.enabled": "true" for flow in flows}
    raw |= some(draw, _CONNECTOR_VALUES, "") | some(draw, _CLIENT_VALUES, "")
    for alias in ALIASES:
        raw |= some(draw, _CLIENT_VALUES, f"{alias}.") | some(draw, _WORKER_VALUES, f"{alias}.")
        raw |= some(draw, {"request.timeout.ms": st.just("5")}, f"{alias}.")
        raw |= some(draw, _ROLE_VALUES, f"{alias}.{draw(st.sampled_from(ROLES))}.")
        raw[f"{alias}.bootstrap.servers"] = f"{alias}:9092"
    for flow in flows:
        raw |= some(draw, _CONNECTOR_VALUES, f"{flow}.")
        places = ("consumer.", "source.consumer.", "source.admin.", "target.producer.", "producer.override.", "admin.")
        raw |= some(draw, _ROLE_VALUES, f"{flow}.{draw(st.sampled_from(places))}")
    return raw


def understood(raw: dict[str, str]) -> MirrorMakerConfig:
    resolver = Resolver(FakeLookup(), {})
    parts = take_apart(raw, (), resolver)
    flows = tuple(each.flow for each in parts.flows)
    return MirrorMakerConfig(raw, ALIASES, flows, (), _Unresolved(FakeLookup(), {}))


class _Unresolved(Resolver):
    """Placeholders are compared, not what they stand for. `${NAME}` of a file is `${env:NAME}` elsewhere."""

    def resolve(self, _key: str, value: str) -> str:
        return re.sub(r"\$\{(\w+)\}", r"${env:\1}", value)


def differences(one: Settings, other: Settings, *without: str) -> dict[str, object]:
    """The keys that mean something else; a value that is set to its default means what an unset one does."""
    names = [name for name in {**one.values, **other.values} if not name.startswith(without)]
    found = {name: (meaning(one, name), meaning(other, name)) for name in names}
    return {name: pair for name, pair in found.items() if pair[0] != pair[1]}


def meaning(settings: Settings, name: str) -> object:
    row = TABLE.get(name)
    return settings[row] if row is not None and row.support.kind != "rejected" else settings.values.get(name)


# Where MM2 derives a name, a form that has to spell it is compared by what comes of it.
_SPELLED = ("config.providers", "offset.storage.topic", "group.id", "config.storage.topic", "status.storage.topic")
_CLIENTS = tuple(f"{side}.{role}." for side in ("source", "target") for role in ROLES) + tuple(f"{r}." for r in ROLES)


def assert_same(one: MirrorMakerConfig, other: MirrorMakerConfig, left_out: frozenset[str] = frozenset()) -> None:
    """The same but for what is left out, by its name behind the alias of its cluster."""
    assert set(other.flows) == set(one.flows)
    for flow in one.flows:
        before, after = one.settings(flow), other.settings(flow)
        reported = {name for name in before.values if f"{flow.target}.{name}" in left_out}
        assert differences(before, after, *_SPELLED, *_CLIENTS).keys() <= reported
        if len([each for each in one.flows if each.target == flow.target]) == 1:
            assert offsets_topic(after) == offsets_topic(before)
            assert transactional_prefix(after, "c") == transactional_prefix(before, "c")
        for alias in flow:
            for role in ROLES:
                found = differences(one.client(alias, role, flow), other.client(alias, role, flow))
                assert {f"{alias}.{name}" for name in found} <= left_out, (alias, role, found)


class _Folder:
    path = "/s"

    def names(self, secret: str) -> list[str]:
        return {"ca": ["ca.crt", "a"], "b": ["b"], "user": ["user.crt", "user.key"], "p": ["pw"]}.get(
            secret, ["user.crt"]
        )


def written_as(raw: dict[str, str], form: str) -> Converted:
    return convert(read_form({"mm2.properties": properties_text(raw.items())}), FakeLookup(), form, BETA)


def through(raw: dict[str, str], form: str) -> dict[str, str]:
    """The file, converted and converted back."""
    written = written_as(raw, form)
    again = convert(read_form(written.files, _Folder()), FakeLookup(), "properties", BETA)
    return as_map(parse_properties(again.files["mm2.properties"]))


BETA = "kafka.strimzi.io/v1beta2"


@given(files())
def test_a_resource_says_what_the_file_said_or_tells_what_it_cannot(raw: dict[str, str]) -> None:
    notes = written_as(raw, "strimzi").notes
    left_out = frozenset(note.partition(": it is left out")[0] for note in notes if ": it is left out" in note)
    assert_same(understood(raw), understood(through(raw, "strimzi")), left_out)


@given(files())
def test_a_resource_has_no_key_that_the_operator_does_not_take(raw: dict[str, str]) -> None:
    for resource in yaml.safe_load_all(written_as(raw, "strimzi").files["mirror-maker-2.yaml"]):
        for cluster in resource["spec"]["clusters"]:
            assert not [key for key in cluster.get("config", {}) if key.startswith(FORBIDDEN) and key not in ALLOWED]


_WORKER_KEYS = _WORKER_VALUES | {
    "producer.linger.ms": st.just("7"),
    "producer.security.protocol": st.just("SSL"),
    "security.protocol": st.just("SSL"),
    "consumer.max.poll.records": st.just("5"),
    "key.converter": st.sampled_from((BYTES_CONVERTER, "JsonConverter")),
    "my.own.key": st.just("x"),
}


@given(st.data(), st.lists(st.sampled_from(("b:1", "b:1,b:2", "c:1")), min_size=1, max_size=3))
def test_every_key_of_a_worker_is_kept_for_each_target_or_told(data: st.DataObject, servers: list[str]) -> None:
    worker = {name: data.draw(_WORKER_KEYS[name]) for name in data.draw(st.sets(st.sampled_from(sorted(_WORKER_KEYS))))}
    targets = {f"t{number}": each for number, each in enumerate(servers)}
    connectors = [
        {
            "name": alias,
            "connector.class": "MirrorSourceConnector",
            "source.cluster.alias": f"s-{alias}",
            "source.cluster.bootstrap.servers": "a:1",
            "target.cluster.alias": alias,
            "target.cluster.bootstrap.servers": each,
        }
        for alias, each in targets.items()
    ]
    own = {"bootstrap.servers": "b:1", **worker}
    texts = {"all.json": json.dumps(connectors), "worker.properties": properties_text(own.items())}
    converted = convert(read_form(texts), FakeLookup(), "properties", BETA)
    made = as_map(parse_properties(converted.files["mm2.properties"]))
    reported = "\n".join((*converted.warnings, *converted.notes))
    for key, value in worker.items():
        is_kept = all(made.get(f"{alias}.{key}") == value for alias in targets)
        is_default = key == "key.converter" and value == BYTES_CONVERTER
        assert is_kept or is_default or f"worker.properties: {key}: " in reported, key
    for alias, each in targets.items():
        assert (f"is not that of {alias}" in reported) == ("b:1" not in each)


@given(files())
def test_connectors_say_what_the_file_said(raw: dict[str, str]) -> None:
    assert_same(understood(raw), understood(through(raw, "connectors")))


@given(st.dictionaries(TEXTS.filter(bool), st.text(st.characters(codec="utf-8"), max_size=20)))
def test_properties_text_is_read_back_as_it_was(values: dict[str, str]) -> None:
    text = properties_text(values.items(), ["a\ncomment"])
    assert text.isascii()
    assert as_map(parse_properties(text)) == values


def test_heartbeats_of_the_flow_stay_as_they_were() -> None:
    raw = {"clusters": "us, eu", "us->eu.enabled": "true", "us.bootstrap.servers": "a:1", "eu.bootstrap.servers": "b:1"}
    for form in ("strimzi", "connectors"):
        again = understood(through(raw, form))
        assert again.settings(Flow("us", "eu"))[keys.EMIT_HEARTBEATS_ENABLED]
        assert not again.settings(Flow("eu", "us"))[keys.EMIT_HEARTBEATS_ENABLED]
