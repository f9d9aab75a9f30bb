"""The steps of a flow beside its tasks: topics, configs, ACLs, and the offset-syncs topic.

`FlowSteps` builds them from the flow's configuration, and again when it changes, and keeps which partitions the flow
replicates. Used only in the flow's thread.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.diagnostics import warning
from heliograph.driver.clusters.cluster_specs import fetch_limits
from heliograph.driver.clusters.internal_topic_creation import create_offsets_topic, ensure_offset_syncs_topic
from heliograph.driver.flow.acl_sync import AclSync
from heliograph.driver.flow.config_sync import ConfigSync
from heliograph.driver.flow.flow_status import SourceStep
from heliograph.driver.flow.topic_sync import Replicated, TopicSync
from heliograph.driver.steps.matching_time import within_matching_time
from heliograph.driver.steps.restart_policy import RestartLimits
from heliograph.driver.steps.step_runner import StepRunner
from heliograph.errors import ConnectError, EngineError
from heliograph.executor.contract.source_offsets import SourceOffsets, read_source_offsets
from heliograph.kafka.admin.producer_fencing import fence_producer, fence_producers
from heliograph.kafka.request_options import EARLIEST, LATEST
from heliograph.kafka.topics.compacted_topic import StoredTopic
from heliograph.mirror.policy.change_rules import CHANGE_KEYS, ChangeRules
from heliograph.mirror.topics.internal_topics import transactional_prefix
from heliograph.mirror.topics.topic_rules import topic_rules
from heliograph.wire.records.connect_offsets import encode_key, encode_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.driver.clusters.cluster_clients import TargetClients
    from heliograph.driver.flow.flow_status import FlowStatus
    from heliograph.driver.steps.step_runner import Step
    from heliograph.kafka.admin.admin import Admin
    from heliograph.model import ChangeActions, CreateTopic, SourceOffset, TopicPartition


log = logging.getLogger(__name__)

_DAY_S = 86_400.0
_BAD_REQUEST = 400


class FlowSteps:
    """The steps of one flow, and what is replicated by the last of them.

    `runner` runs them: without Spark (EngineError) a flow fails, everything else is an issue and tried again.
    `stop_offsets` are where a copy with `once` ends.
    """

    def __init__(
        self, config: MirrorConfig, source: Admin, written: TargetClients, status: FlowStatus, *, once: bool
    ) -> None:
        self.runner = StepRunner(str(status.flow), status, fatal=(EngineError,))
        self.runner.is_last_run = once
        self.replicated = Replicated((), {})
        self.stop_offsets: dict[TopicPartition, int] = {}
        self.offsets_topic: CreateTopic | None = None
        self._flow = status.flow
        self._source = source
        self._written = written
        self._status = status
        self._once = once
        self._configure(config)

    def _configure(self, config: MirrorConfig) -> None:
        self._config = config
        self._settings = config.settings(self._flow)
        self._connector = config.source_connector(self._flow)
        self._rules = topic_rules(config, self._flow)
        self._change_rules = ChangeRules.of(self._settings)
        self._actions: dict[str, ChangeActions] = {}  # of each topic, by these rules
        # If the producer writes to another cluster than the one we administer, that one needs the remote topics too.
        self._topic_syncs = [
            TopicSync(self._settings, self._rules, self._source, target) for target in self._written.topic_clusters
        ]
        try_again_s = RestartLimits.of(self._settings).try_again_s
        self.runner.set_pauses(try_again_s, try_again_s)

    def adopt(self, config: MirrorConfig, refresh: Step) -> None:
        """Build the steps from another configuration, and refresh the topics at once."""
        self._configure(config)
        self.runner.schedule.clear()
        self.plan(refresh)
        self.runner.attempt(SourceStep.TOPICS, refresh)

    def begin(self) -> None:
        """Create the internal topics, fence earlier producers, and find what to replicate.

        Raises ClusterError if a cluster does not allow it. Without offset syncs the flow copies nevertheless; its tasks
        report what they cannot write.
        """
        self.offsets_topic = create_offsets_topic(self._written.source_offsets, self._settings)
        if self._settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
            self.runner.attempt(SourceStep.SYNCS, self._ensure_offset_syncs_topic)
        if self._is_exactly_once:
            fence_producers(self._written.records, transactional_prefix(self._settings, self._connector))
        self.runner.report(SourceStep.TOPICS, self.refresh_topics())
        if self._once:
            self.stop_offsets = self.log_offsets([*self.replicated.partitions], LATEST)
        if not self.replicated.partitions:
            log.warning("%s: no topic on '%s' matches; nothing to copy yet.", self._flow, self._flow.source)

    def plan(self, refresh: Step) -> None:
        """Add the steps to the schedule; `refresh` is the step that refreshes topics and assigns them to tasks."""
        settings, schedule = self._settings, self.runner.schedule
        source, target = self._source, self._written.target
        if settings[keys.SYNC_TOPIC_ACLS_ENABLED]:
            acls = AclSync(self._rules, source, target)
            schedule.repeat(SourceStep.ACLS, acls.sync, settings[keys.SYNC_TOPIC_ACLS_INTERVAL_SECONDS])
        if settings[keys.SYNC_TOPIC_CONFIGS_ENABLED]:
            configs = ConfigSync(self._rules, source, target)
            schedule.repeat(SourceStep.CONFIGS, configs.sync, settings[keys.SYNC_TOPIC_CONFIGS_INTERVAL_SECONDS])
        if settings[keys.REFRESH_TOPICS_ENABLED] and not self._once:
            self.runner.repeat_later(SourceStep.TOPICS, refresh, settings[keys.REFRESH_TOPICS_INTERVAL_SECONDS])
        if settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
            self.runner.repeat_later(SourceStep.SYNCS, self._ensure_offset_syncs_topic, _DAY_S)

    def refresh_topics(self) -> tuple[str, ...]:
        """Create and grow remote topics, and update what is replicated; return the issues found."""
        replicated = self._sync_topics()
        topics = within_matching_time(replicated.remote_topics, CHANGE_KEYS, self._source.alias)
        known = self._actions  # matching thousands of topics again at each refresh would take a second
        self._actions = {topic: known.get(topic) or self._change_rules.actions(topic) for topic in topics}
        self.replicated = replace(replicated, actions=self._actions)
        remote = self.replicated.remote_topics
        lacking = self.replicated.lacking
        paths = {topic: self._rules.heartbeat_path(topic) for topic in remote}
        self._status.heartbeat_paths = {topic: path for topic, path in paths.items() if path is not None}
        self._status.partitions.set_replicated(
            {tp: remote.get(tp.topic) for tp in (*self.replicated.partitions, *lacking)}
        )
        for tp, why in lacking.items():
            self._status.partitions.hold([tp], warning(why))
        return self.replicated.issues

    def fence_tasks(self, numbers: Iterable[int]) -> None:
        """Abort the transactions of tasks that have ended.

        One that was killed in a commit leaves a transaction open, and source offsets cannot be read past it before its
        time-out.
        """
        if self._is_exactly_once:
            prefix = transactional_prefix(self._settings, self._connector)
            for number in numbers:
                fence_producer(self._written.records, f"{prefix}{number}")

    @property
    def _is_exactly_once(self) -> bool:
        return self._settings[keys.EXACTLY_ONCE_SOURCE_SUPPORT] == "enabled"

    def read_source_offsets(self) -> SourceOffsets:
        """Read the committed source offsets of the flow's partitions."""
        assert self.offsets_topic is not None
        return read_source_offsets(
            self._written.source_offsets, self.offsets_topic.name, self._connector, self._flow.source
        )

    def write_source_offsets(self, source_offsets: Iterable[SourceOffset]) -> None:
        """Write source offsets of partitions that no task copies now."""
        assert self.offsets_topic is not None
        records = [
            (encode_key(self._connector, self._flow.source, each.tp), encode_value(each.offset))
            for each in source_offsets
        ]
        StoredTopic(self._written.source_offsets, self.offsets_topic.name).write(records)

    def log_offsets(self, tps: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """Return the offsets of the source's logs for a timestamp, EARLIEST or LATEST, as a task would read them."""
        return self._source.list_offsets(tps, timestamp, self._isolation_level)

    def positions(self, tps: list[TopicPartition], start: str | int | None) -> dict[TopicPartition, int]:
        """Return where partitions continue that a user moves; none without a start. Raises ConnectError."""
        if start is None or not tps:
            return {}
        earliest = self.log_offsets(tps, EARLIEST) if start != "end" else {}
        if start == "beginning":
            return earliest
        latest = self.log_offsets(tps, LATEST)
        if isinstance(start, str):
            return latest
        for tp in tps:
            if not earliest[tp] <= start <= latest[tp]:
                has = f"offsets {earliest[tp]} to {latest[tp]}"
                raise ConnectError(_BAD_REQUEST, f"{tp} cannot continue at offset {start}: the source has {has}")
        return dict.fromkeys(tps, start)

    @property
    def _isolation_level(self) -> int:
        consumer = self._config.client(self._flow.source, "consumer", self._flow)
        return fetch_limits(consumer, self._settings).isolation_level

    def _sync_topics(self) -> Replicated:
        synced = [sync.sync(self.replicated) for sync in self._topic_syncs]
        issues = tuple(issue for replicated in synced for issue in replicated.issues)
        return replace(synced[-1], issues=issues)  # the last cluster is the one that records are written to

    def _ensure_offset_syncs_topic(self) -> tuple[str, ...]:
        is_at_source = self._settings[keys.OFFSET_SYNCS_LOCATION] == "source"
        ensure_offset_syncs_topic(self._source if is_at_source else self._written.target, self._settings)
        return ()
