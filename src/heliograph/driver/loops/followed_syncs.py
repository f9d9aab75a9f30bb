"""Follows offset syncs: those of a flow, and those of its reverse flow.

In active-active a group on A reads `t` and `B.t`. The syncs of A->B translate its offsets in `t`; its offsets in `B.t`
are downstream offsets of B->A, and the syncs of that flow translate them back to `t` on B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.driver.clusters.cluster_clients import make_admin
from heliograph.kafka.topics.topic_reader import LogTail
from heliograph.mirror.groups.checkpoints import original_partition
from heliograph.mirror.groups.offset_map import OffsetMap
from heliograph.mirror.topics.internal_topics import offset_syncs_topic
from heliograph.mirror.topics.topic_rules import topic_rules
from heliograph.model import Flow, TopicPartition
from heliograph.wire.records.mirror_records import decode_offset_sync

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.kafka.admin.admin import Admin


class SyncsTail:
    """The offset map of one flow, kept up to date from its offset syncs topic."""

    def __init__(self, cluster: Admin, tp: TopicPartition) -> None:
        self.known = OffsetMap()
        self._tail = LogTail(cluster, tp)
        self._recreations = 0

    def learn(self, check: Callable[[], None]) -> None:
        """Take the syncs that are new; `check` is called after each, since a first read may take minutes."""
        for record in self._tail.read_new():
            sync = decode_offset_sync(record.key, record.value, record.headers)
            if self._tail.recreations != self._recreations:
                self._recreations, self.known = self._tail.recreations, OffsetMap()
            if sync is not None:
                self.known.take(sync)
            check()


class ReverseSyncs:
    """The offset map of the reverse flow, if the configuration enables it; read once a group needs it."""

    def __init__(self, config: MirrorConfig, flow: Flow) -> None:
        reverse = Flow(flow.target, flow.source)
        is_enabled = reverse in config.enabled_flows and config.settings(reverse)[keys.EMIT_OFFSET_SYNCS_ENABLED]
        self._flow_rules = topic_rules(config, flow)
        self._rules = topic_rules(config, reverse) if is_enabled else None
        self._config, self._reverse = config, reverse
        self._cluster: Admin | None = None
        self._tail: SyncsTail | None = None
        self._nothing = OffsetMap()

    @property
    def known(self) -> OffsetMap:
        """The map, as far as it was learned."""
        return self._nothing if self._tail is None else self._tail.known

    def original(self, tp: TopicPartition) -> TopicPartition | None:
        """Return the target's partition that the reverse flow copies to `tp` on the source, or None."""
        if self._rules is None:
            return None
        original = original_partition(self._flow_rules, tp, self._rules)
        return original if original is not None and self._rules.replicates(original.topic) else None

    def learn(self, check: Callable[[], None]) -> None:
        """Take the syncs that are new; none while the topic does not exist."""
        settings = self._config.settings(self._reverse)
        topic = offset_syncs_topic(settings).name
        if self._cluster is None:
            is_at_source = settings[keys.OFFSET_SYNCS_LOCATION] == "source"
            alias = self._reverse.source if is_at_source else self._reverse.target
            self._cluster = make_admin(self._config, alias, self._reverse)
        if self._tail is None and topic in self._cluster.view([topic]).partition_counts:
            self._tail = SyncsTail(self._cluster, TopicPartition(topic, 0))
        if self._tail is not None:
            self._tail.learn(check)

    def close(self) -> None:
        """Close the client."""
        if self._cluster is not None:
            self._cluster.close()
