"""Names and shapes of MM2's own topics (reference 2.18 and 3.1)."""

from __future__ import annotations

import pytest

from heliograph.config.resolve.settings import Settings
from heliograph.mirror.topics.internal_topics import checkpoints_topic, heartbeats_topic, offset_syncs_topic
from heliograph.model import CreateTopic

COMPACT = ("cleanup.policy", "compact")
KEEP_AN_HOUR = ("min.compaction.lag.ms", "3600000")
ROLL_EVERY_TEN_MINUTES = ("segment.ms", "600000")


def settings(**values: str) -> Settings:
    base = {"source.cluster.alias": "A", "target.cluster.alias": "B"}
    return Settings(base | {key.replace("__", "-").replace("_", "."): value for key, value in values.items()})


def test_the_three_topics_of_a_flow_have_one_compacted_partition() -> None:
    assert offset_syncs_topic(settings()) == CreateTopic(
        "mm2-offset-syncs.B.internal", 1, 3, (COMPACT, KEEP_AN_HOUR, ROLL_EVERY_TEN_MINUTES)
    )
    assert checkpoints_topic(settings()) == CreateTopic("A.checkpoints.internal", 1, 3, (COMPACT,))
    assert heartbeats_topic(settings()) == CreateTopic("heartbeats", 1, 3, (COMPACT,))


def test_offset_syncs_topic_carries_the_other_clusters_alias_on_either_side() -> None:
    """MirrorSourceConfigTest.testOffsetSyncsTopic."""
    assert offset_syncs_topic(settings(offset__syncs_topic_location="target")).name == "mm2-offset-syncs.A.internal"
    assert offset_syncs_topic(settings(offset__syncs_topic_location="source")).name == "mm2-offset-syncs.B.internal"
    with pytest.raises(Exception, match=r"offset-syncs\.topic\.location: 'somewhere' must be one of source, target"):
        offset_syncs_topic(settings(offset__syncs_topic_location="somewhere"))


def test_replication_factors_are_each_topics_own() -> None:
    assert offset_syncs_topic(settings(offset__syncs_topic_replication_factor="1")).replication_factor == 1
    assert checkpoints_topic(settings(checkpoints_topic_replication_factor="2")).replication_factor == 2
    assert heartbeats_topic(settings(heartbeats_topic_replication_factor="-1")).replication_factor == -1


@pytest.mark.parametrize("policy", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
def test_a_separator_applies_to_internal_names_unless_disabled(policy: str) -> None:
    values = {"replication_policy_separator": "_", "replication_policy_class": policy}
    assert checkpoints_topic(settings(**values)).name == "A_checkpoints_internal"
    assert offset_syncs_topic(settings(**values)).name == "mm2-offset-syncs_B_internal"
    assert heartbeats_topic(settings(**values)).name == "heartbeats"
    values["replication_policy_internal_topic_separator_enabled"] = "false"
    assert checkpoints_topic(settings(**values)).name == "A.checkpoints.internal"
    assert offset_syncs_topic(settings(**values)).name == "mm2-offset-syncs.B.internal"
