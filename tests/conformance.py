"""Maps Kafka's tests of MM2 to ours: `python -m tests.conformance docs/reference/conformance.md` writes the page.

A test of ours may check more than Java's, and a few check something else on purpose: then a note says what. If there is
no test, the note gives the reason. `tests/architecture/test_conformance.py` compares table, tests and page.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.java.java_tests import JAVA_TESTS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "conformance.md"


class Answer(NamedTuple):
    """Tests of ours as `file::test`, the file under tests/; and words: how they differ, or why there are none."""

    tests: tuple[str, ...]
    words: str = ""


def ours(*tests: str, but: str = "") -> Answer:
    """What Java's test checks is checked by these."""
    return Answer(tests, but)


def left_out(reason: str) -> Answer:
    """There is no test of ours."""
    return Answer((), reason)


_MAP = "unit/mirror/test_offset_map.py::"
_CHECKPOINTS = "unit/mirror/test_checkpoints.py::"
_CYCLES = "unit/mirror/test_cycles.py::"
_CONFIGS = "unit/mirror/test_config_sync.py::"
_FILTERS = "unit/mirror/test_filters.py::"
_MAKER = "unit/config/test_mirror_maker_config.py::"
_PREFIXES = "unit/config/test_mirror_connector_config.py::TestPrefixes::"
_CONTROL = "unit/driver/test_control.py::"
_LOOP = "unit/driver/test_control_loop.py::"
_INTERNAL = "unit/driver/test_internal_topics.py::"
_POLICY = "unit/mirror/test_policy.py::"
_CLIENT = "unit/client/test_mirror_client.py::"
_WRITER = "unit/executor/test_sync_writer.py::"
_SUPPORT = "unit/config/test_exactly_once_support.py::"
_OFFSETS = "unit/wire/test_connector_offsets.py::"
_GROUPS = "broker/test_checkpoints.py::"
_TOPIC_CONFIGS = "broker/test_topic_configs.py::"
_ACLS = "broker/test_acls.py::"
_MIRROR = "spark/test_mirror_connectors.py::"

_JAVA_METRICS = ours(
    "golden/test_java_metric_names.py::test_names_types_and_labels_are_those_of_java",
    "unit/metrics/test_dialects.py::test_the_new_names_replace_the_old_ones_of_mm2_or_are_beside_them",
)
_JAVA_CLASS = left_out(
    "`forwarding.admin.class` names a Java class and is refused with a sentence; that topics, partitions, configs and"
    " ACLs are made is tested without it"
)
_FROZEN = left_out("a rule for Java's shared, changeable ConfigDef; the rows of our table are frozen")
_INVALID_PARTITION = ours(f"{_OFFSETS}test_alter_offsets_invalid_partition_partition")
_ALTER_OFFSETS = {
    "testAlterOffsetsIncorrectPartitionKey": ours(f"{_OFFSETS}test_alter_offsets_incorrect_partition_key"),
    "testAlterOffsetsMissingPartitionKey": ours(f"{_OFFSETS}test_alter_offsets_missing_partition_key"),
    "testAlterOffsetsMultiplePartitions": ours(f"{_OFFSETS}test_alter_offsets_multiple_partitions"),
    "testAlterOffsetsIncorrectOffsetKey": ours(f"{_OFFSETS}test_alter_offsets_incorrect_offset_key"),
    "testAlterOffsetsOffsetValues": ours(
        f"{_OFFSETS}test_alter_offsets_offset_values_of_the_others", f"{_OFFSETS}test_an_offset_must_be_a_whole_number"
    ),
    "testAlterOffsetsTombstones": ours(f"{_OFFSETS}test_alter_offsets_tombstones"),
    "testSuccessfulAlterOffsets": ours(f"{_OFFSETS}test_successful_alter_offsets"),
}
_BOTH_SIDES = ours(f"{_PREFIXES}test_a_role_of_the_flow_reaches_both_sides")
_ONE_SIDE = ours(f"{_PREFIXES}test_a_role_of_one_side_wins_and_reaches_only_that_side")
_SEPARATOR = ours(f"{_POLICY}test_separator_of_internal_topics")

CONFORMANCE: dict[str, dict[str, Answer]] = {
    "CheckpointTest": {
        "testSerde": ours(
            "golden/test_mirror_records.py::test_checkpoint_serde", "interop/test_java_records.py::test_checkpoints"
        )
    },
    "HeartbeatTest": {
        "testSerde": ours(
            "golden/test_mirror_records.py::test_heartbeat_serde", "interop/test_java_records.py::test_heartbeats"
        )
    },
    "OffsetSyncTest": {
        "testSerde": ours(
            "golden/test_mirror_records.py::test_offset_sync_serde", "interop/test_java_records.py::test_offset_syncs"
        )
    },
    "CheckpointStoreTest": {
        "testReadCheckpointsTopic": ours(
            f"{_CHECKPOINTS}test_read_checkpoints_topic",
            f"{_GROUPS}test_a_restart_goes_on_from_the_checkpoints_that_are_there",
        ),
        "testReadCheckpointsTopicError": ours(
            f"{_ACLS}test_read_checkpoints_topic_error",
            but="Java goes on as if there were no checkpoints; ours waits, names the missing permission and goes on"
            " with it",
        ),
    },
    "OffsetSyncStoreTest": {
        "testOffsetTranslation": ours(f"{_MAP}test_offset_translation"),
        "testNoTranslationIfStoreNotStarted": ours(f"{_MAP}test_no_translation_if_store_not_started"),
        "testNoTranslationIfNoOffsetSync": ours(f"{_MAP}test_no_translation_if_no_offset_sync"),
        "testPastOffsetTranslation": ours(
            f"{_MAP}test_past_offset_translation",
            "interop/test_java_store.py::test_the_slots_are_those_of_java_after_any_syncs",
        ),
        "testPastOffsetTranslationWithoutInitializationReadToEnd": ours(
            f"{_MAP}test_past_offset_translation_without_initialization_read_to_end"
        ),
        "testConsistentlySpacedSyncs": ours(f"{_MAP}test_consistently_spaced_syncs"),
        "testRandomlySpacedSyncs": ours(f"{_MAP}test_randomly_spaced_syncs"),
        "testDroppedSyncsSpacing": ours(f"{_MAP}test_dropped_syncs_spacing"),
    },
    "OffsetSyncWriterTest": {
        "testMaybeQueueOffsetSyncs": ours(f"{_WRITER}test_maybe_queue_offset_syncs"),
        "testFirePendingOffsetSyncs": ours(
            f"{_WRITER}test_fire_pending_offset_syncs",
            but="not ten syncs are under way at most, but one request with all that are due",
        ),
        "testPromoteDelayedOffsetSyncs": ours(f"{_WRITER}test_promote_delayed_offset_syncs"),
    },
    "MirrorSourceTaskTest": {
        "testSerde": ours("broker/test_copy.py::test_every_part_of_a_record_arrives_unchanged"),
        "testOffsetSync": ours(f"{_MAP}test_offset_sync"),
        "testZeroOffsetSync": ours(f"{_MAP}test_zero_offset_sync"),
        "testPoll": ours("broker/test_copy.py::test_every_part_of_a_record_arrives_unchanged"),
        "testSeekBehaviorDuringStart": ours(
            "broker/test_copy.py::test_a_restart_goes_on_where_the_last_run_stopped",
            "broker/test_copy.py::test_without_progress_latest_begins_at_the_end",
        ),
        "testCommitRecordWithNullMetadata": ours(
            "broker/test_every_batch.py::test_a_record_too_large_for_the_target_can_be_left_out",
            but="there are no transforms that drop records; one the target does not take is left out as quietly",
        ),
        "testSendSyncEvent": ours(
            f"{_WRITER}test_maybe_queue_offset_syncs", f"{_MAP}test_a_sync_that_is_not_due_waits_for_the_commit"
        ),
    },
    "MirrorSourceConnectorTest": {
        "testReplicatesHeartbeatsByDefault": ours(f"{_CYCLES}test_replicates_heartbeats_by_default"),
        "testReplicatesHeartbeatsDespiteFilter": ours(f"{_CYCLES}test_replicates_heartbeats_despite_filter"),
        "testDoesNotReplicateHeartbeatsWhenDisabled": ours(
            f"{_CYCLES}test_does_not_replicate_heartbeats_when_disabled"
        ),
        "testReplicatesHeartbeatsWhenDisabledButFilterAllows": ours(
            f"{_CYCLES}test_replicates_heartbeats_when_disabled_but_filter_allows"
        ),
        "testNoCycles": ours(
            f"{_CYCLES}test_no_cycles",
            f"{_CYCLES}test_no_cycles_of_a_cluster_with_itself",
            but="`source.topic1` is refused as well, as in Kafka after 4.3 (KAFKA-9914)",
        ),
        "testIdentityReplication": ours(f"{_CYCLES}test_identity_replication"),
        "testAclFiltering": ours("unit/mirror/test_acl_sync.py::test_acl_filtering"),
        "testAclTransformation": ours("unit/mirror/test_acl_sync.py::test_acl_transformation"),
        "testNoBrokerAclAuthorizer": ours(f"{_ACLS}test_no_broker_acl_authorizer"),
        "testMissingDescribeConfigsAcl": ours(f"{_ACLS}test_missing_describe_configs_acl"),
        "testConfigPropertyFiltering": ours(f"{_CONFIGS}test_config_property_filtering"),
        "testConfigPropertyFilteringWithAlterConfigs": left_out(
            "configs are altered one by one only, as MM2 does since 4.0"
        ),
        "testConfigPropertyFilteringWithAlterConfigsAndSourceDefault": ours(
            f"{_CONFIGS}test_config_property_filtering_with_source_default",
            f"{_CONFIGS}test_defaults_from_the_source_are_set",
        ),
        "testNewTopicConfigs": ours(f"{_CONFIGS}test_new_topic_configs"),
        "testMirrorSourceConnectorTaskConfig": ours(
            "unit/mirror/test_assignment.py::test_the_first_assignment_is_mm2s_round_robin"
        ),
        "testRefreshTopicPartitions": ours("unit/mirror/test_topics.py::test_refresh_topic_partitions"),
        "testRefreshTopicPartitionsTopicOnTargetFirst": ours(
            "unit/mirror/test_topics.py::test_refresh_topic_partitions_topic_on_target_first"
        ),
        "testIsCycleWithNullUpstreamTopic": ours(f"{_CYCLES}test_is_cycle_with_null_upstream_topic"),
        "testExactlyOnceSupport": ours(
            f"{_SUPPORT}test_exactly_once_support", but="committed records are read by default, so it is supported"
        ),
        "testExactlyOnceSupportValidation": ours(f"{_SUPPORT}test_exactly_once_support_validation"),
        "testAlterOffsetsInvalidPartitionPartition": _INVALID_PARTITION,
        **_ALTER_OFFSETS,
        "testAlterOffsetsOffsetValues": ours(
            f"{_OFFSETS}test_alter_offsets_offset_values_of_a_source_connector",
            f"{_OFFSETS}test_an_offset_must_be_a_whole_number",
        ),
    },
    "MirrorSourceConfigTest": {
        "testTaskConfigTopicPartitions": ours(
            "unit/driver/test_lease.py::test_the_driver_hands_out_partitions",
            but="a task is given partitions as values, not as a text of names",
        ),
        "testTopicMatching": ours(f"{_FILTERS}test_topic_matching"),
        "testConfigPropertyMatching": ours(f"{_FILTERS}test_config_property_matching"),
        "testNoTopics": ours(f"{_FILTERS}test_no_topics_blank_matches_nothing_not_even_the_empty_name"),
        "testAllTopics": ours(f"{_FILTERS}test_all_topics"),
        "testListOfTopics": ours(f"{_FILTERS}test_list_of_topics_with_blanks_and_empty_entries"),
        "testNonMutationOfConfigDef": _FROZEN,
        "testOffsetSyncsTopic": ours(
            "unit/mirror/test_internal_topic_names.py::test_offset_syncs_topic_carries_the_other_clusters_alias_on_either_side",
            "unit/config/test_dedicated_file.py::test_a_mistake_is_one_sentence",
        ),
        "testProducerConfigsForOffsetSyncsTopic": ours(
            "broker/test_offset_syncs.py::test_transactions_at_the_source_are_translated_exactly",
            but="client ids are our own",
        ),
        "testAdminConfigsForOffsetSyncsTopic": ours(
            f"{_MIRROR}test_offset_syncs_topics_on_target", but="client ids are our own"
        ),
    },
    "MirrorCheckpointConfigTest": {
        "testTaskConfigConsumerGroups": left_out("groups are not split over tasks: the driver follows all of a flow"),
        "testGroupMatching": ours(f"{_FILTERS}test_group_matching"),
        "testNonMutationOfConfigDef": _FROZEN,
        "testConsumerConfigsForOffsetSyncsTopic": ours(f"{_CONTROL}test_consumer_configs_for_offset_syncs_topic"),
        "testSkipValidationIfConnectorDisabled": ours(
            "unit/config/test_contradictions.py::test_a_flow_that_is_off_contradicts_nothing"
        ),
        "testValidateIfConnectorEnabled": ours(
            "unit/config/test_contradictions.py::test_a_contradiction_is_one_problem_that_names_both_keys",
            "unit/config/test_contradictions.py::test_what_mm2_accepts_and_few_mean_is_a_warning",
            but="switching checkpoints off is a warning, since MM2 goes on replicating without them",
        ),
    },
    "MirrorCheckpointConnectorTest": {
        "testMirrorCheckpointConnectorDisabled": ours(f"{_CONTROL}test_mirror_checkpoint_connector_disabled"),
        "testMirrorCheckpointConnectorEnabled": ours(f"{_CONTROL}test_mirror_checkpoint_connector_enabled"),
        "testNoConsumerGroup": ours(
            f"{_GROUPS}test_only_groups_that_the_filters_take_are_followed",
            but="there is no task that could be left out; without groups nothing is written",
        ),
        "testConsumerGroupInitializeTimeout": ours(f"{_LOOP}test_a_beginning_that_fails_is_reported_and_tried_again"),
        "testReplicationDisabled": ours(f"{_CONTROL}test_replication_disabled"),
        "testReplicationEnabled": ours(f"{_CONTROL}test_mirror_checkpoint_connector_enabled"),
        "testFindConsumerGroups": ours(f"{_GROUPS}test_only_groups_that_the_filters_take_are_followed"),
        "testFindConsumerGroupsInCommonScenarios": ours(
            f"{_GROUPS}test_only_groups_that_the_filters_take_are_followed"
        ),
        "testAlterOffsetsInvalidPartitionPartition": _INVALID_PARTITION,
        **_ALTER_OFFSETS,
    },
    "MirrorCheckpointTaskTest": {
        "testDownstreamTopicRenaming": ours(f"{_CHECKPOINTS}test_downstream_topic_renaming"),
        "testCheckpoint": ours(f"{_CHECKPOINTS}test_checkpoint"),
        "testSyncOffset": ours(f"{_CHECKPOINTS}test_sync_offset"),
        "testSyncOffsetForTargetGroupWithNullOffsetAndMetadata": ours(
            f"{_CHECKPOINTS}test_sync_offset_for_target_group_with_null_offset_and_metadata"
        ),
        "testNoCheckpointForTopicWithoutOffsetSyncs": ours(
            f"{_CHECKPOINTS}test_no_checkpoint_for_topic_without_offset_syncs"
        ),
        "testNoCheckpointForTopicWithNullOffsetAndMetadata": ours(
            f"{_CHECKPOINTS}test_no_checkpoint_for_topic_with_null_offset_and_metadata"
        ),
        "testCheckpointRecordsMonotonicIfStoreRewinds": ours(
            f"{_CHECKPOINTS}test_checkpoint_records_monotonic_if_store_rewinds"
        ),
        "testCheckpointsTaskRestartUsesExistingCheckpoints": ours(
            f"{_CHECKPOINTS}test_checkpoints_task_restart_uses_existing_checkpoints"
        ),
        "testCheckpointStoreInitialized": ours(f"{_LOOP}test_a_beginning_that_fails_is_reported_and_tried_again"),
    },
    "MirrorConnectorConfigTest": {
        "testSourceConsumerConfig": _BOTH_SIDES,
        "testSourceConsumerConfigWithSourcePrefix": _ONE_SIDE,
        "testSourceProducerConfig": _BOTH_SIDES,
        "testSourceProducerConfigWithSourcePrefix": _ONE_SIDE,
        "testSourceAdminConfig": _BOTH_SIDES,
        "testSourceAdminConfigWithSourcePrefix": _ONE_SIDE,
        "testTargetAdminConfig": _BOTH_SIDES,
        "testTargetAdminConfigWithSourcePrefix": _ONE_SIDE,
        "testInvalidSecurityProtocol": ours(f"{_MAKER}test_invalid_security_protocol"),
        "testCaseInsensitiveSecurityProtocol": ours(f"{_MAKER}test_case_insensitive_security_protocol"),
        "testMetricsReporters": ours(
            "unit/config/test_mirror_connector_config.py::test_metrics_reporters",
            but="Java classes are read and said to have no effect",
        ),
        "testExplicitlyEnableJmxReporter": ours(
            "unit/config/test_mirror_connector_config.py::test_metrics_reporters",
            but="Java classes are read and said to have no effect",
        ),
        "testReplicationPolicy": ours("unit/config/test_mirror_connector_config.py::test_replication_policy"),
    },
    "MirrorHeartBeatConnectorTest": {
        "testMirrorHeartbeatConnectorDisabled": ours(f"{_CONTROL}test_mirror_heartbeat_connector_disabled"),
        "testReplicationDisabled": ours(f"{_CONTROL}test_replication_disabled"),
        **_ALTER_OFFSETS,
    },
    "MirrorHeartbeatTaskTest": {"testPollCreatesRecords": ours("broker/test_heartbeats.py::test_poll_creates_records")},
    "MirrorMakerConfigTest": {
        "testClusterConfigProperties": ours(f"{_MAKER}test_cluster_config_properties"),
        "testReplicationConfigProperties": ours(f"{_MAKER}test_replication_config_properties"),
        "testClientConfigProperties": ours(f"{_MAKER}test_client_config_properties"),
        "testIncludesConnectorConfigProperties": ours(f"{_MAKER}test_includes_connector_config_properties"),
        "testIncludesTopicFilterProperties": ours(f"{_MAKER}test_includes_topic_filter_properties"),
        "testWorkerConfigs": ours(f"{_MAKER}test_worker_configs"),
        "testClusterPairsWithDefaultSettings": ours(f"{_MAKER}test_cluster_pairs_with_default_settings"),
        "testEmptyClusterPairsWithGloballyDisabledHeartbeats": ours(
            f"{_MAKER}test_empty_cluster_pairs_with_globally_disabled_heartbeats"
        ),
        "testClusterPairsWithTwoDisabledHeartbeats": ours(f"{_MAKER}test_cluster_pairs_with_two_disabled_heartbeats"),
        "testClusterPairsWithGloballyDisabledHeartbeats": ours(
            f"{_MAKER}test_cluster_pairs_with_globally_disabled_heartbeats"
        ),
        "testClusterPairsWithGloballyDisabledHeartbeatsCentralLocal": ours(
            f"{_MAKER}test_cluster_pairs_with_globally_disabled_heartbeats_central_local"
        ),
        "testInvalidSecurityProtocol": ours(f"{_MAKER}test_invalid_security_protocol"),
        "testCaseInsensitiveSecurityProtocol": ours(f"{_MAKER}test_case_insensitive_security_protocol"),
        "testAllConfigNames": ours("golden/test_config_parity.py::test_all_config_names"),
        "testLazyConfigResolution": ours(f"{_MAKER}test_lazy_config_resolution"),
    },
    "MirrorSourceMetricsTest": {"testTags": _JAVA_METRICS},
    "MirrorLegacyMetricsTest": {"testSourceTags": _JAVA_METRICS, "testCheckpointTags": _JAVA_METRICS},
    "MirrorMetricsTest": {"testSourceTags": _JAVA_METRICS, "testCheckpointTags": _JAVA_METRICS},
    "MirrorUtilsTest": {
        "testCreateCompactedTopic": ours(f"{_INTERNAL}test_create_compacted_topic"),
        "testCreateCompactedTopicAlreadyExists": ours(
            f"{_INTERNAL}test_a_topic_that_is_there_is_taken_as_it_is",
            f"{_INTERNAL}test_create_compacted_topic_that_another_created_meanwhile",
        ),
        **dict.fromkeys(
            (
                "testCreateCompactedTopicAssumeTopicAlreadyExistsWithUnsupportedVersionException",
                "testCreateCompactedTopicAssumeTopicAlreadyExistsWithClusterAuthorizationException",
                "testCreateCompactedTopicAssumeTopicAlreadyExistsWithTopicAuthorizationException",
            ),
            ours(f"{_INTERNAL}test_create_compacted_topic_assumes_it_exists"),
        ),
        **dict.fromkeys(
            (
                "testCreateCompactedTopicFailsWithInvalidConfigurationException",
                "testCreateCompactedTopicFailsWithTimeoutException",
            ),
            ours(f"{_INTERNAL}test_create_compacted_topic_fails"),
        ),
    },
    "MirrorClientTest": {
        "testIsHeartbeatTopic": ours(f"{_CLIENT}test_is_heartbeat_topic", f"{_CLIENT}test_is_not_heartbeat_topic"),
        "testIsCheckpointTopic": ours(f"{_CLIENT}test_is_checkpoint_topic", f"{_CLIENT}test_is_not_checkpoint_topic"),
        "countHopsForTopicTest": ours(f"{_CLIENT}test_count_hops"),
        "heartbeatTopicsTest": ours(f"{_CLIENT}test_heartbeat_topics"),
        "checkpointsTopicsTest": ours(f"{_CLIENT}test_checkpoint_topics"),
        "replicationHopsTest": ours(f"{_CLIENT}test_replication_hops"),
        "upstreamClustersTest": ours(f"{_CLIENT}test_upstream_clusters"),
        "testIdentityReplicationUpstreamClusters": ours(f"{_CLIENT}test_upstream_clusters"),
        "remoteTopicsTest": ours(f"{_CLIENT}test_remote_topics"),
        "testIdentityReplicationRemoteTopics": ours(f"{_CLIENT}test_identity_replication_remote_topics"),
        "remoteTopicsSeparatorTest": ours(f"{_CLIENT}test_remote_topics_separator"),
        "testIdentityReplicationTopicSource": ours(f"{_POLICY}test_identity_keeps_names_but_for_heartbeats"),
    },
    "ReplicationPolicyTest": {
        "testInternalTopic": ours(f"{_POLICY}test_internal_topics", f"{_POLICY}test_internal_topic_names"),
        "offsetSyncsTopic_shouldBeEffectedByInternalTopicSeparatorEnabled": _SEPARATOR,
        "checkpointsTopic_shouldBeEffectedByInternalTopicSeparatorEnabled": _SEPARATOR,
        "heartbeatsTopic_shouldNotBeEffectedByInternalTopicSeparatorConfig": _SEPARATOR,
    },
    "SourceAndTargetTest": {"testEquals": ours(f"{_POLICY}test_source_and_target_are_equal_as_a_pair")},
    "MirrorConnectorsIntegrationBaseTest": {
        "testReplication": ours(
            f"{_MIRROR}test_replication",
            "broker/test_failover.py::test_a_group_moves_over_and_home_without_loss_or_repetition",
            "spark/test_active_active.py::test_a_minute_of_load_on_both_sides_neither_loops_nor_loses_nor_repeats",
        ),
        "testReplicationWithEmptyPartition": ours(f"{_MIRROR}test_replication_with_empty_partition"),
        "testOneWayReplicationWithAutoOffsetSync": ours(
            f"{_MIRROR}test_one_way_replication_with_auto_offset_sync", but="no record is delivered again"
        ),
        "testOneWayReplicationWithFrequentOffsetSyncs": ours(
            f"{_MIRROR}test_one_way_replication_with_frequent_offset_syncs", but="no record is delivered again"
        ),
        "testReplicationWithoutOffsetSyncWillNotCreateOffsetSyncsTopic": ours(
            f"{_MIRROR}test_replication_without_offset_sync_will_not_create_offset_syncs_topic"
        ),
        "testOffsetSyncsTopicsOnTarget": ours(
            f"{_MIRROR}test_offset_syncs_topics_on_target", f"{_GROUPS}test_offset_syncs_topic_on_the_target"
        ),
        "testNoCheckpointsIfNoRecordsAreMirrored": ours(f"{_GROUPS}test_no_checkpoints_if_no_records_are_mirrored"),
        "testRestartReplication": ours(f"{_MIRROR}test_restart_replication"),
        "testOffsetTranslationBehindReplicationFlow": ours(
            f"{_MIRROR}test_offset_translation_behind_replication_flow",
            f"{_GROUPS}test_a_group_ahead_of_replication_is_moved_as_far_as_there_are_records",
        ),
        "testSyncTopicConfigs": ours(f"{_TOPIC_CONFIGS}test_sync_topic_configs"),
        "testReplicateSourceDefault": ours(f"{_TOPIC_CONFIGS}test_replicate_source_default"),
        "testReplicateTargetDefault": ours(f"{_TOPIC_CONFIGS}test_replicate_target_default"),
        "testReplicateFromLatest": ours(f"{_MIRROR}test_replicate_from_latest"),
    },
    "IdentityReplicationIntegrationTest": {
        "testReplication": ours(f"{_MIRROR}test_identity_replication"),
        "testOneWayReplicationWithAutoOffsetSync": ours(
            f"{_MIRROR}test_one_way_replication_with_frequent_offset_syncs", but="no record is delivered again"
        ),
        "testOneWayReplicationWithFrequentOffsetSyncs": ours(
            f"{_MIRROR}test_one_way_replication_with_frequent_offset_syncs", but="no record is delivered again"
        ),
    },
    "MirrorConnectorsIntegrationSSLTest": {
        "testReplication": ours(
            "spark/test_secured_documents.py::test_orders_cross_the_border",
            but="the source is reached over SASL_SSL, the target without",
        )
    },
    "MirrorConnectorsIntegrationTransactionsTest": {
        "testReplication": ours(
            f"{_MIRROR}test_cluster_with_a_hostile_alias_and_transactions_on_both_sides",
            f"{_GROUPS}test_a_group_is_translated_exactly_over_transactions",
        )
    },
    "MirrorConnectorsIntegrationExactlyOnceTest": {
        "testReplication": ours(
            f"{_MIRROR}test_cluster_with_a_hostile_alias_and_transactions_on_both_sides",
            f"{_MIRROR}test_restart_replication",
            "broker/test_exactly_once.py::test_java_progress_without_our_notes_counts_as_it_is",
            "broker/test_exactly_once.py::test_progress_that_was_forgotten_on_purpose_is_made_again",
            "spark/test_worker.py::test_a_connector_lives_through_rest_and_a_restart_of_its_worker",
            but="its second half, offsets altered and reset over REST, is tested without exactly-once",
        )
    },
    "MirrorConnectorsWithCustomForwardingAdminIntegrationTest": dict.fromkeys(
        (
            "testReplicationIsCreatingTopicsUsingProvidedForwardingAdmin",
            "testCreatePartitionsUseProvidedForwardingAdmin",
            "testSyncTopicConfigUseProvidedForwardingAdmin",
            "testSyncTopicACLsUseProvidedForwardingAdmin",
        ),
        _JAVA_CLASS,
    ),
    "DedicatedMirrorIntegrationTest": {
        "testSingleNodeCluster": ours(
            "spark/test_run.py::test_new_topics_partitions_and_configs_are_noticed_while_running"
        ),
        "testClusterWithEmitOffsetDisabled": ours(
            f"{_MIRROR}test_replication_without_offset_sync_will_not_create_offset_syncs_topic"
        ),
        "testMultiNodeCluster": ours(
            f"{_MIRROR}test_cluster_with_a_hostile_alias_and_transactions_on_both_sides",
            "spark/test_kills.py"
            "::test_of_two_instances_with_exactly_once_the_first_ends_with_a_sentence_and_nothing_is_double",
            but="with its alias and exactly-once, but one node: processes that share work are a Connect cluster's",
        ),
    },
}

_HEAD = """\
# Conformance to MirrorMaker 2's own tests

Generated from `tests/conformance.py` by `make docs`; do not edit.

These are Apache Kafka's tests of MirrorMaker 2 (4.3, `connect/mirror` and `connect/mirror-client`), each with the
corresponding test of this project under `tests/`, or the reason why there is none. Tests in `broker` and `spark` use
real brokers, tests in `interop` Kafka's own Java classes. Of {all} tests, {answered} have a counterpart and {left_out}
are left out:

| left out | why |
|---|---|
{reasons}"""


def render() -> str:
    """The table as a page."""
    answers = [answer for methods in CONFORMANCE.values() for answer in methods.values()]
    answered = sum(bool(answer.tests) for answer in answers)
    left_out = len(answers) - answered
    lines = [_HEAD.format(answered=answered, all=len(answers), left_out=left_out, reasons=_reasons())]
    for java_class in JAVA_TESTS:
        lines += [f"\n## {java_class}\n", "| Kafka's test | ours |", "|---|---|"]
        lines += [f"| `{method}` | {_cell(answer)} |" for method, answer in CONFORMANCE[java_class].items()]
    return "\n".join(lines) + "\n"


def _reasons() -> str:
    by_reason: dict[str, list[str]] = {}
    for java_class, methods in CONFORMANCE.items():
        for answer in methods.values():
            if not answer.tests:
                by_reason.setdefault(answer.words, []).append(f"`{java_class}`")
    return "\n".join(
        f"| {len(classes)} of {', '.join(dict.fromkeys(classes))} | {reason} |" for reason, classes in by_reason.items()
    )


def _cell(answer: Answer) -> str:
    if not answer.tests:
        return f"*left out:* {answer.words}"
    tests = "<br>".join(f"`{test}`" for test in answer.tests)
    return f"{tests}<br>{answer.words}" if answer.words else tests


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
