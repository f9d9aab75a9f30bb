"""Which changes of a source connector's config leave its tasks alone."""

from __future__ import annotations

import pytest

from heliograph.config.effective.connect_config import is_live_change

CONFIG = {
    "name": "m",
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "source.cluster.bootstrap.servers": "a:9092",
    "topics": "orders",
    "tasks.max": "2",
}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("topics", "orders,more.*"),
        ("topics.exclude", "secret"),
        ("topics.blacklist", "secret"),
        ("refresh.topics.interval.seconds", "5"),
        ("sync.topic.acls.enabled", "false"),
        ("sync.topic.configs.interval.seconds", "5"),
        ("replication.factor", "1"),
        ("heliograph.restart.attempts.max", "3"),
        ("heliograph.on.truncation", "fail"),
        ("heliograph.on.recreated", "a=restart, fail"),
        ("heliograph.on.target.deleted", "continue"),
        ("groups", "g"),  # a checkpoint connector's
        ("emit.heartbeats.interval.seconds", "5"),
    ],
)
def test_what_only_the_driver_reads_restarts_no_task(key: str, value: str) -> None:
    assert is_live_change(CONFIG, {**CONFIG, key: value})
    assert is_live_change({**CONFIG, key: value}, CONFIG)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tasks.max", "3"),
        ("source.cluster.bootstrap.servers", "b:9092"),
        ("source.consumer.max.poll.records", "1"),
        ("producer.override.linger.ms", "1"),
        ("replication.policy.class", "IdentityReplicationPolicy"),
        ("offset-syncs.topic.location", "target"),
        ("emit.offset-syncs.enabled", "false"),
        ("enabled", "false"),
        ("heliograph.task.buffer.bytes", "2000000"),
        ("my.filter.key", "x"),
    ],
)
def test_what_tasks_were_started_with_needs_new_ones(key: str, value: str) -> None:
    assert not is_live_change(CONFIG, {**CONFIG, key: value})
    assert not is_live_change(CONFIG, {**CONFIG, key: value, "topics": "other"})


def test_the_same_config_in_another_order_is_no_change() -> None:
    assert is_live_change(CONFIG, dict(reversed(CONFIG.items())))
