"""Keys of a connector that nobody knows are told, with the nearest name; what may be somebody's is not."""

from __future__ import annotations

from heliograph.config.validate.key_names import unknown_keys

MIRROR = {"name": "m", "connector.class": "MirrorSourceConnector", "source.cluster.alias": "A", "tasks.max": "2"}


def test_a_typo_is_told_with_the_nearest_name() -> None:
    config = {**MIRROR, "topic": "orders", "sync.topic.acl.enabled": "false"}
    assert [str(each) for each in unknown_keys(config)] == [
        "topic: unknown key; it has no effect. Did you mean 'topics'?",
        "sync.topic.acl.enabled: unknown key; it has no effect. Did you mean 'sync.topic.acls.enabled'?",
    ]


def test_what_belongs_to_a_client_a_converter_or_an_own_class_is_not_told() -> None:
    others = {"producer.override.linger.ms": "5", "key.converter.schemas.enable": "false", "transforms.x.type": "T"}
    assert list(unknown_keys({**MIRROR, **others})) == []
    own = {"topic.filter.class": "my.module:Filter", "my.list": "a"}
    assert list(unknown_keys({**MIRROR, **own})) == []
