"""The tests of Apache Kafka 4.3's MirrorMaker 2 (connect/mirror, connect/mirror-client) that Heliograph answers to.

Names only: what each one checks is answered by a test of ours in `tests.conformance`.
"""

from __future__ import annotations

_ALTER_OFFSETS = """
    testAlterOffsetsIncorrectPartitionKey testAlterOffsetsMissingPartitionKey testAlterOffsetsMultiplePartitions
    testAlterOffsetsIncorrectOffsetKey testAlterOffsetsOffsetValues testAlterOffsetsTombstones
    testSuccessfulAlterOffsets
"""

_BY_CLASS = {
    "CheckpointTest": "testSerde",
    "HeartbeatTest": "testSerde",
    "OffsetSyncTest": "testSerde",
    "CheckpointStoreTest": "testReadCheckpointsTopic testReadCheckpointsTopicError",
    "OffsetSyncStoreTest": """
        testOffsetTranslation testNoTranslationIfStoreNotStarted testNoTranslationIfNoOffsetSync
        testPastOffsetTranslation testPastOffsetTranslationWithoutInitializationReadToEnd
        testConsistentlySpacedSyncs testRandomlySpacedSyncs testDroppedSyncsSpacing
    """,
    "OffsetSyncWriterTest": "testMaybeQueueOffsetSyncs testFirePendingOffsetSyncs testPromoteDelayedOffsetSyncs",
    "MirrorSourceTaskTest": """
        testSerde testOffsetSync testZeroOffsetSync testPoll testSeekBehaviorDuringStart
        testCommitRecordWithNullMetadata testSendSyncEvent
    """,
    "MirrorSourceConnectorTest": f"""
        testReplicatesHeartbeatsByDefault testReplicatesHeartbeatsDespiteFilter
        testDoesNotReplicateHeartbeatsWhenDisabled testReplicatesHeartbeatsWhenDisabledButFilterAllows
        testNoCycles testIdentityReplication testAclFiltering testAclTransformation testNoBrokerAclAuthorizer
        testMissingDescribeConfigsAcl testConfigPropertyFiltering testConfigPropertyFilteringWithAlterConfigs
        testConfigPropertyFilteringWithAlterConfigsAndSourceDefault testNewTopicConfigs
        testMirrorSourceConnectorTaskConfig testRefreshTopicPartitions
        testRefreshTopicPartitionsTopicOnTargetFirst testIsCycleWithNullUpstreamTopic testExactlyOnceSupport
        testExactlyOnceSupportValidation testAlterOffsetsInvalidPartitionPartition {_ALTER_OFFSETS}
    """,
    "MirrorSourceConfigTest": """
        testTaskConfigTopicPartitions testTopicMatching testConfigPropertyMatching testNoTopics testAllTopics
        testListOfTopics testNonMutationOfConfigDef testOffsetSyncsTopic testProducerConfigsForOffsetSyncsTopic
        testAdminConfigsForOffsetSyncsTopic
    """,
    "MirrorCheckpointConfigTest": """
        testTaskConfigConsumerGroups testGroupMatching testNonMutationOfConfigDef
        testConsumerConfigsForOffsetSyncsTopic testSkipValidationIfConnectorDisabled
        testValidateIfConnectorEnabled
    """,
    "MirrorCheckpointConnectorTest": f"""
        testMirrorCheckpointConnectorDisabled testMirrorCheckpointConnectorEnabled testNoConsumerGroup
        testConsumerGroupInitializeTimeout testReplicationDisabled testReplicationEnabled testFindConsumerGroups
        testFindConsumerGroupsInCommonScenarios testAlterOffsetsInvalidPartitionPartition {_ALTER_OFFSETS}
    """,
    "MirrorCheckpointTaskTest": """
        testDownstreamTopicRenaming testCheckpoint testSyncOffset
        testSyncOffsetForTargetGroupWithNullOffsetAndMetadata testNoCheckpointForTopicWithoutOffsetSyncs
        testNoCheckpointForTopicWithNullOffsetAndMetadata testCheckpointRecordsMonotonicIfStoreRewinds
        testCheckpointsTaskRestartUsesExistingCheckpoints testCheckpointStoreInitialized
    """,
    "MirrorConnectorConfigTest": """
        testSourceConsumerConfig testSourceConsumerConfigWithSourcePrefix testSourceProducerConfig
        testSourceProducerConfigWithSourcePrefix testSourceAdminConfig testSourceAdminConfigWithSourcePrefix
        testTargetAdminConfig testTargetAdminConfigWithSourcePrefix testInvalidSecurityProtocol
        testCaseInsensitiveSecurityProtocol testMetricsReporters testExplicitlyEnableJmxReporter
        testReplicationPolicy
    """,
    "MirrorHeartBeatConnectorTest": f"testMirrorHeartbeatConnectorDisabled testReplicationDisabled {_ALTER_OFFSETS}",
    "MirrorHeartbeatTaskTest": "testPollCreatesRecords",
    "MirrorMakerConfigTest": """
        testClusterConfigProperties testReplicationConfigProperties testClientConfigProperties
        testIncludesConnectorConfigProperties testIncludesTopicFilterProperties testWorkerConfigs
        testClusterPairsWithDefaultSettings testEmptyClusterPairsWithGloballyDisabledHeartbeats
        testClusterPairsWithTwoDisabledHeartbeats testClusterPairsWithGloballyDisabledHeartbeats
        testClusterPairsWithGloballyDisabledHeartbeatsCentralLocal testInvalidSecurityProtocol
        testCaseInsensitiveSecurityProtocol testAllConfigNames testLazyConfigResolution
    """,
    "MirrorSourceMetricsTest": "testTags",
    "MirrorLegacyMetricsTest": "testSourceTags testCheckpointTags",
    "MirrorMetricsTest": "testSourceTags testCheckpointTags",
    "MirrorUtilsTest": """
        testCreateCompactedTopic testCreateCompactedTopicAlreadyExists
        testCreateCompactedTopicAssumeTopicAlreadyExistsWithUnsupportedVersionException
        testCreateCompactedTopicAssumeTopicAlreadyExistsWithClusterAuthorizationException
        testCreateCompactedTopicAssumeTopicAlreadyExistsWithTopicAuthorizationException
        testCreateCompactedTopicFailsWithInvalidConfigurationException
        testCreateCompactedTopicFailsWithTimeoutException
    """,
    "MirrorClientTest": """
        testIsHeartbeatTopic testIsCheckpointTopic countHopsForTopicTest heartbeatTopicsTest
        checkpointsTopicsTest replicationHopsTest upstreamClustersTest testIdentityReplicationUpstreamClusters
        remoteTopicsTest testIdentityReplicationRemoteTopics remoteTopicsSeparatorTest
        testIdentityReplicationTopicSource
    """,
    "ReplicationPolicyTest": """
        testInternalTopic offsetSyncsTopic_shouldBeEffectedByInternalTopicSeparatorEnabled
        checkpointsTopic_shouldBeEffectedByInternalTopicSeparatorEnabled
        heartbeatsTopic_shouldNotBeEffectedByInternalTopicSeparatorConfig
    """,
    "SourceAndTargetTest": "testEquals",
    "MirrorConnectorsIntegrationBaseTest": """
        testReplication testReplicationWithEmptyPartition testOneWayReplicationWithAutoOffsetSync
        testOneWayReplicationWithFrequentOffsetSyncs
        testReplicationWithoutOffsetSyncWillNotCreateOffsetSyncsTopic testOffsetSyncsTopicsOnTarget
        testNoCheckpointsIfNoRecordsAreMirrored testRestartReplication testOffsetTranslationBehindReplicationFlow
        testSyncTopicConfigs testReplicateSourceDefault testReplicateTargetDefault testReplicateFromLatest
    """,
    "IdentityReplicationIntegrationTest": """
        testReplication testOneWayReplicationWithAutoOffsetSync testOneWayReplicationWithFrequentOffsetSyncs
    """,
    "MirrorConnectorsIntegrationSSLTest": "testReplication",
    "MirrorConnectorsIntegrationTransactionsTest": "testReplication",
    "MirrorConnectorsIntegrationExactlyOnceTest": "testReplication",
    "MirrorConnectorsWithCustomForwardingAdminIntegrationTest": """
        testReplicationIsCreatingTopicsUsingProvidedForwardingAdmin testCreatePartitionsUseProvidedForwardingAdmin
        testSyncTopicConfigUseProvidedForwardingAdmin testSyncTopicACLsUseProvidedForwardingAdmin
    """,
    "DedicatedMirrorIntegrationTest": "testSingleNodeCluster testClusterWithEmitOffsetDisabled testMultiNodeCluster",
}

JAVA_TESTS = {java_class: tuple(methods.split()) for java_class, methods in _BY_CLASS.items()}
