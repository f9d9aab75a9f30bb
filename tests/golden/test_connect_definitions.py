"""The keys of the three connectors as REST tells them, compared with the ConfigDefs of Java 4.3.1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heliograph.config.effective.connect_config import CLASSES
from heliograph.config.keys import TABLE
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.validate.connector_definitions import GROUPS, definition
from heliograph.config.validate.connector_validation import ConnectorPlugins
from heliograph.mirror.policy.class_checks import class_error
from heliograph.model import ConnectorKind

DUMP = json.loads((Path(__file__).parent / "java_configdefs.json").read_text())
CONFIGS: dict[ConnectorKind, str] = {
    "source": "MirrorSourceConfig",
    "checkpoint": "MirrorCheckpointConfig",
    "heartbeat": "MirrorHeartbeatConfig",
}
MEMBERS = [
    "name",
    "type",
    "required",
    "default_value",
    "importance",
    "documentation",
    "group",
    "order_in_group",
    "width",
    "display_name",
    "dependents",
]
# Ours, and told as such: what holds where the key is not set.
OTHER_DEFAULTS = {"refresh.topics.interval.seconds", "refresh.groups.interval.seconds"}


ENV_PROVIDER = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


class NoLookup:
    def variable(self, name: str) -> str | None:
        return {"ALIAS": "A", "SECRET": "s"}.get(name)

    def read_text(self, path: str) -> str | None:
        raise AssertionError(path)


def plugins(**worker: str) -> ConnectorPlugins:
    settings = {name.replace("__", "."): value for name, value in worker.items()}
    return ConnectorPlugins(settings, Resolver(NoLookup(), settings))


def java(kind: ConnectorKind) -> dict[str, Any]:
    found: dict[str, Any] = DUMP[CONFIGS[kind]] | DUMP["SourceConnectorConfig"]
    return found


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_connector_has_javas_keys_and_no_others(kind: ConnectorKind) -> None:
    reported = plugins().definitions(CLASSES[kind])
    assert sorted(entry["name"] for entry in reported) == sorted(java(kind))
    assert all(list(entry) == MEMBERS for entry in reported)


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_key_is_told_as_java_tells_it(kind: ConnectorKind) -> None:
    differ = {}
    for entry in plugins().definitions(CLASSES[kind]):
        known = java(kind)[entry["name"]]
        default = known["default"]
        text = ",".join(default) if isinstance(default, list) else default
        text = str(text).lower() if isinstance(text, bool) else text
        expected = (known["type"], known["importance"], known["required"], None if text is None else str(text))
        ours = (entry["type"], entry["importance"], entry["required"], entry["default_value"])
        if ours != expected:
            differ[entry["name"]] = (ours, expected)
    assert set(differ) <= OTHER_DEFAULTS


def test_a_default_that_differs_is_the_one_that_holds() -> None:
    row = TABLE["refresh.topics.interval.seconds"]
    assert definition(row)["default_value"] == str(row.default) != str(row.mm2_default)
    assert definition(TABLE["tasks.max"])["default_value"] == "1"


def test_a_framework_key_has_its_place_on_connects_page() -> None:
    entry = definition(TABLE["errors.tolerance"])
    place = (entry["group"], entry["order_in_group"], entry["width"], entry["display_name"])
    assert place == ("Error Handling", 3, "SHORT", "Error Tolerance")
    other = definition(TABLE["topics"])
    assert (other["group"], other["order_in_group"], other["width"]) == (None, -1, "NONE")


# --- validation -----------------------------------------------------------------------------------
GOOD = {"name": "c", "connector.class": "MirrorSource", "source.cluster.alias": "A"}


def errors(
    kind: ConnectorKind = "source", worker: dict[str, str] | None = None, **changes: str | None
) -> dict[str, list[str]]:
    config: dict[str, str | None] = GOOD | {name.replace("__", "."): value for name, value in changes.items()}
    catalogue = ConnectorPlugins(worker or {}, Resolver(NoLookup(), worker or {}))
    reported = catalogue.validate(CLASSES[kind], config)
    found = {each["value"]["name"]: each["value"]["errors"] for each in reported["configs"] if each["value"]["errors"]}
    assert reported["error_count"] == sum(map(len, found.values())) == len(catalogue.errors(CLASSES[kind], config))
    return found


def test_a_good_config_has_connects_structure_and_no_errors() -> None:
    reported = plugins().validate("MirrorSource", GOOD | {"topics": "a , b", "tasks.max": "3"})
    assert (reported["name"], reported["error_count"], reported["groups"]) == ("MirrorSource", 0, list(GROUPS))
    values = {each["definition"]["name"]: each["value"] for each in reported["configs"]}
    assert values["topics"] == {
        "name": "topics",
        "value": "a,b",
        "recommended_values": [],
        "errors": [],
        "visible": True,
    }
    assert (values["tasks.max"]["value"], values["key.converter"]["value"]) == ("3", None)
    assert len(reported["configs"]) == len(java("source"))


@pytest.mark.parametrize("kind", CONFIGS)
def test_missing_keys_are_told_in_javas_words(kind: ConnectorKind) -> None:
    reported = plugins().validate(CLASSES[kind], {"connector.class": CLASSES[kind], "tasks.max": "zero"})
    found = [error for each in reported["configs"] for error in each["value"]["errors"]]
    assert found == [
        'Missing required configuration "name" which has no default value.',
        "Invalid value zero for configuration tasks.max: Not a number of type INT",
        "Invalid value null for configuration tasks.max: Value must be non-null",
        'Missing required configuration "source.cluster.alias" which has no default value.',
    ]
    assert reported["error_count"] == 4


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("tasks.max", "0", "Value must be at least 1"),
        ("enabled", "perhaps", "Expected value to be either true or false"),
        ("replication.factor", "two", "Not a number of type INT"),
        ("offset-syncs.topic.location", "moon", "String must be one of: source, target"),
        ("errors.tolerance", "some", "String must be one of: none, all"),
        ("name", "", "String may not be empty"),
        ("name", "a\x07", "String may not contain control sequences but had the following ASCII chars: 7"),
    ],
)
def test_a_wrong_value_is_told_in_javas_words(key: str, value: str, why: str) -> None:
    assert errors(**{key: value}) == {key: [f"Invalid value {value} for configuration {key}: {why}"]}


def test_a_null_is_told() -> None:
    assert errors(topics=None) == {"topics": ["Null value can not be supplied as the configuration value."]}
    assert errors(whatever=None) == {"whatever": ["Null value can not be supplied as the configuration value."]}


def test_what_heliograph_cannot_do_is_an_error() -> None:
    (why,) = errors(transforms="t")["transforms"]
    assert why.startswith("Invalid value t for configuration transforms: Heliograph copies batches as they are")
    (why,) = errors(key__converter="org.apache.kafka.connect.json.JsonConverter")["key.converter"]
    assert "Heliograph keeps the bytes of every key" in why
    assert errors(key__converter="org.apache.kafka.connect.converters.ByteArrayConverter") == {}


def test_keys_beyond_javas_are_looked_at_where_they_are_set() -> None:
    assert set(errors(**{"heliograph.throttle.bytes.per.second": "x"})) == {"heliograph.throttle.bytes.per.second"}
    assert set(errors("checkpoint", emit__heartbeats__enabled="x")) == set()  # not a key of this connector
    assert errors(**{"my.own.filter.key": "x", "source.cluster.bootstrap.servers": "h:1"}) == {}


def test_offset_syncs_that_are_off_and_set_up_contradict_each_other() -> None:
    why = "MirrorSourceConnector can't setup offset-syncs feature while emit.offset-syncs.enabled set to false"
    changes = {"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target"}
    assert errors(**changes) == {"emit.offset-syncs.enabled": [why]}
    assert errors(**{"emit.offset-syncs.enabled": "false"}) == {}


def test_checkpoints_cannot_be_switched_off_in_their_own_connector() -> None:
    """MirrorCheckpointConfigTest.testValidateIfConnectorEnabled and testSkipValidationIfConnectorDisabled."""
    off = {"emit.checkpoints.enabled": "false", "emit.offset-syncs.enabled": "false"}
    assert errors("checkpoint", **off) == {
        "emit.checkpoints.enabled": ["MirrorCheckpointConnector can't run with emit.checkpoints.enabled set to false"],
        "emit.offset-syncs.enabled": ["MirrorCheckpointConnector can't run without offset syncs"],
    }
    assert errors("checkpoint", enabled="false", **off) == {}


def test_exactly_once_that_is_required_must_be_possible() -> None:
    """MirrorSourceConnectorTest.testExactlyOnceSupportValidation."""
    ready = {"exactly.once.source.support": "enabled"}
    required = {"exactly.once.support": "required"}
    assert errors(worker=ready, **required) == {}
    assert errors(**required) == {
        "exactly.once.support": ["This worker does not have exactly-once source support enabled."]
    }
    dirty = {"source.consumer.isolation.level": "read_uncommitted"}
    (why,) = errors(worker=ready, **required, **dirty)["exactly.once.support"]
    assert "source consumer is configured with isolation.level set to 'read_committed'" in why
    (why,) = errors("heartbeat", worker=ready, **required)["exactly.once.support"]
    assert why.startswith("The connector does not implement the API required for preflight validation of exactly-once")


def test_an_error_hides_no_other() -> None:
    """What is wrong with one value keeps no contradiction of others from the report."""
    off = {"emit.checkpoints.enabled": "false", "exactly.once.support": "required"}
    every = {"emit.checkpoints.enabled", "exactly.once.support"}
    for name, value in (
        ("sync.group.offsets.enabled", "x"),
        ("source.cluster.alias", None),
        ("name", ""),
        ("source.cluster.sasl.jaas.config", "${env:NOBODY}"),
        ("groups", "${file:/x:y}"),
        ("producer.override.acks", "${env:NOBODY}"),
    ):
        found = errors("checkpoint", worker=ENV_PROVIDER, **off, **{name: value})
        assert set(found) == {*every, name}, name
        assert len(found["exactly.once.support"]) == 2


def test_a_long_list_of_transforms_does_not_become_a_far_longer_answer() -> None:
    """A megabyte of names would become 700 MB of definitions."""
    config = GOOD | {"transforms": ",".join(map(str, range(20_000)))}
    reported = ConnectorPlugins({}, Resolver(NoLookup(), {}), class_error).validated(CLASSES["source"], config)
    listed = [each.definition["name"] for each in reported if each.definition["name"].startswith("transforms.")]
    assert listed[:2] == ["transforms.0.type", "transforms.0.plugin.version"]
    assert len(listed) <= 200
    assert any(each.definition["name"] == "transforms" and each.errors for each in reported)


def classes(**changes: str) -> dict[str, str | None]:
    """What is said of a config where classes are looked up."""
    config = GOOD | {name.replace("__", "."): value for name, value in changes.items()}
    worker = ENV_PROVIDER | {"heliograph.plugin.packages": "heliograph, no_such_module"}
    reported = ConnectorPlugins(worker, Resolver(NoLookup(), worker), class_error).validated(CLASSES["source"], config)
    return {each.definition["name"]: "; ".join(map(str, each.errors)) for each in reported if each.errors}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("replication.policy.class", "IdentityReplicationPolicy"),
        ("replication.policy.class", "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"),
        ("replication.policy.class", "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"),
        ("replication.policy.class", "RenameReplicationPolicy"),
        ("replication.policy.class", "heliograph.mirror.policy:IdentityReplicationPolicy"),
        ("topic.filter.class", "DefaultTopicFilter"),
        ("forwarding.admin.class", "org.apache.kafka.clients.admin.ForwardingAdmin"),
        ("key.converter", "org.apache.kafka.connect.converters.ByteArrayConverter"),
    ],
)
def test_a_class_that_can_be_used_is_taken(key: str, name: str) -> None:
    assert classes(**{key: name}) == {}


@pytest.mark.parametrize(
    ("key", "name", "why"),
    [
        ("replication.policy.class", "no_such_module:Policy", "the module 'no_such_module' cannot be imported"),
        (
            "replication.policy.class",
            "heliograph.errors:Nobody",
            "the module 'heliograph.errors' has no class 'Nobody'.",
        ),
        ("topic.filter.class", "heliograph.errors:ConfigError", "needs the method should_replicate_topic"),
        ("forwarding.admin.class", "heliograph.errors:ConfigError", "Class heliograph.errors:ConfigError could not be"),
        ("key.converter", "org.apache.kafka.connect.json.JsonConverter", "Heliograph keeps the bytes of every key"),
        ("key.converter", "JsonConverter", "Heliograph keeps the bytes of every key"),
    ],
)
def test_a_class_that_cannot_be_used_gets_its_sentence(key: str, name: str, why: str) -> None:
    (reported,) = classes(**{key: name}).values()
    assert reported is not None
    assert reported.startswith(f"Invalid value {name} for configuration {key}: ")
    assert why in reported


def test_what_a_placeholder_of_a_class_holds_is_not_shown() -> None:
    (reported,) = classes(replication__policy__class="${env:SECRET}").values()
    assert reported == (
        "Invalid value ${env:SECRET} for configuration replication.policy.class:"
        " What the placeholder stands for does not fit"
    )


def test_a_refused_override_is_told_with_its_key() -> None:
    policy = {"connector.client.config.override.policy": "None"}
    assert errors(worker=policy, producer__override__acks="1") == {
        "producer.override.acks": [
            "The 'None' policy does not allow 'acks' to be overridden in the connector configuration."
        ]
    }


def test_a_secret_is_never_shown() -> None:
    catalogue = ConnectorPlugins(ENV_PROVIDER, Resolver(NoLookup(), ENV_PROVIDER))
    config = GOOD | {"sasl.jaas.config": "module required password=p;", "source.cluster.alias": "${env:ALIAS}"}
    reported = {
        each["value"]["name"]: each["value"] for each in catalogue.validate(CLASSES["source"], config)["configs"]
    }
    assert reported["sasl.jaas.config"]["value"] == "[hidden]"
    assert reported["source.cluster.alias"]["value"] == "${env:ALIAS}"


def test_a_placeholder_that_nobody_fills_is_told() -> None:
    why = {"topics": ["topics: the environment variable NOBODY is not set."]}
    assert errors(worker=ENV_PROVIDER, topics="${env:NOBODY}") == why
    assert "add 'config.providers = env'" in str(errors(topics="${env:NOBODY}"))


def test_names_and_aliases_of_the_plugins() -> None:
    assert sorted(plugins().connector_classes()) == sorted(CLASSES.values())
    assert plugins().resolve("MirrorHeartbeat") == CLASSES["heartbeat"]
    assert plugins().resolve("FileStreamSource") is None


def test_what_a_placeholder_holds_is_not_shown_where_it_does_not_fit() -> None:
    class Machine(NoLookup):
        def variable(self, name: str) -> str | None:
            return f"top-secret {name}"

    catalogue = ConnectorPlugins(ENV_PROVIDER, Resolver(Machine(), ENV_PROVIDER))
    unfit = {"tasks.max": "${env:X}", "offset-syncs.topic.location": "${env:X}"}
    reported = catalogue.validate("MirrorSource", GOOD | unfit)
    assert reported["error_count"] == 2
    assert "top-secret" not in str(reported)
    assert "Invalid value ${env:X} for configuration tasks.max: What the placeholder stands for does not fit" in str(
        reported
    )
