"""`heliograph plan`: says what would happen and why, as text and as JSON, and leaves both clusters as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from tests.support.clusters.clients import admin_of, make_topic
from tests.support.runs.running import run, write_file

pytestmark = pytest.mark.broker


def snapshot(cluster: EmbeddedCluster) -> dict[str, Any]:
    admin = admin_of(cluster)
    counts = admin.view().partition_counts
    configs = admin.topic_configs(counts)
    admin.close()
    return {topic: (count, configs[topic]) for topic, count in counts.items()}


def test_a_plan_tells_everything_and_touches_nothing(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    new, small, other, out = (f"{topic}-{word}" for word in ("new", "small", "other", "out"))
    make_topic(source, new, 3, cleanup_policy="compact")
    make_topic(source, small, 4)
    make_topic(source, other, 1, retention_ms="1000")
    make_topic(source, out, 1)
    make_topic(target, f"{alias}.{small}", 2)
    make_topic(target, f"{alias}.{other}", 1, segment_ms="60000")
    file = write_file(tmp_path, source, target, alias, f"{topic}.*", f"{alias}->target.topics.exclude={out}")
    before = snapshot(source), snapshot(target)
    reported = run("plan", file)
    assert (reported.returncode, reported.stderr) == (0, "")
    lines = reported.stdout.splitlines()
    assert lines[0] == f"{alias}->target"
    wanted = [
        f"  create   {alias}.{new}: 3 partitions, replication factor 1, cleanup.policy=compact",
        f"  grow     {alias}.{small}: 2 -> 4 partitions",
        f"  copy     {new} -> {alias}.{new} (3 partitions)",
        f"  skip     {out}: topics.exclude matches it",
    ]
    assert [line for line in wanted if line not in lines] == []
    assert any(line.startswith(f"  create   mm2-offsets.{alias}.internal: 25 partitions") for line in lines)
    data = json.loads(run("plan", file, "--json", "--clusters", "target").stdout)
    (flow,) = data["flows"]
    assert flow["flow"] == f"{alias}->target"
    assert flow["grow"] == [{"topic": f"{alias}.{small}", "old": 2, "new": 4}]
    assert flow["alter"] == [
        {
            "topic": f"{alias}.{other}",
            "changes": [
                {"name": "retention.ms", "old": "-1", "new": "1000"},
                {"name": "segment.ms", "old": "60000", "new": None},
            ],
        }
    ]
    assert [copied["topic"] for copied in flow["copy"] if copied["topic"].startswith(topic)] == sorted(
        [new, other, small]
    )
    assert {"topic": out, "reason": "topics.exclude matches it"} in flow["skip"]
    assert any("using 1" in note for note in flow["notes"])
    assert any("has no authorizer" in note for note in flow["notes"])
    assert (snapshot(source), snapshot(target)) == before


def test_one_topic_is_explained_be_it_there_or_not(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic, 1)
    file = write_file(tmp_path, source, target, alias, topic)
    there = run("plan", file, "--topic", topic).stdout
    assert f"  create   {alias}.{topic}: 1 partition" in there
    assert "mm2-offsets" not in there
    assert "  skip" not in there
    missing = run("plan", file, "--topic", "nowhere").stdout
    assert (
        f"  skip     nowhere: it does not exist on '{alias}'; if it did, it would not be copied:"
        " no pattern in topics matches it\n" in missing
    )
    assert "nothing to create, grow, alter or add" in missing


def test_what_stands_in_the_way_is_told_with_an_exit_code(
    source: EmbeddedCluster, target: EmbeddedCluster, topic: str, alias: str, tmp_path: Path
) -> None:
    make_topic(source, topic, 1)
    file = write_file(tmp_path, source, target, alias, topic, "replication.factor=5")
    reported = run("plan", file)
    assert reported.returncode == 1
    assert "  issue    replication.factor is 5, but the cluster 'target' has 1 broker" in reported.stdout
