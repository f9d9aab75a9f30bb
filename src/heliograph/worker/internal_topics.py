"""Making the topics MM2 keeps for itself: progress, offset syncs, checkpoints, heartbeats.

MM2's tolerance: whoever may not create topics on a cluster has often been given them ready-made. So a refusal for lack
of permission, or of a broker too old to create topics, means "it is taken to be there"; anything else is an error.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.config import keys, store_keys
from heliograph.engine.spec import SyncsSpec
from heliograph.errors import BrokerError, ConfigError
from heliograph.kafka.refusals import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_REPLICATION_FACTOR,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
)
from heliograph.mirror.internal_topics import config_topic, offset_syncs_topic, offsets_topic, status_topic
from heliograph.mirror.replication_factor import bent_sentence, possible_factor, too_large_sentence
from heliograph.worker.clusters import cluster_spec

if TYPE_CHECKING:
    from heliograph.config.mirror_config import MirrorConfig
    from heliograph.config.types import Settings
    from heliograph.kafka.admin import Admin
    from heliograph.mirror.topics import CreateTopic
    from heliograph.model import Flow

log = logging.getLogger(__name__)

_TAKEN_TO_EXIST = frozenset({UNSUPPORTED_VERSION, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED})


def create_offsets_topic(admin: Admin, settings: Settings) -> CreateTopic:
    """Create the topic of progress where it is missing; returns it with the partitions it really has."""
    return create_internal_topic(
        admin,
        offsets_topic(settings),
        is_explicit_factor=keys.OFFSET_STORAGE_REPLICATION_FACTOR in settings,
        factor_key=keys.OFFSET_STORAGE_REPLICATION_FACTOR.name,
    )


def ensure_offset_syncs(config: MirrorConfig, flow: Flow, source: Admin, target: Admin) -> SyncsSpec | None:
    """Where a flow's tasks tell their offset syncs, the topic made; None where none are wanted."""
    settings = config.settings(flow)
    if not settings[keys.EMIT_OFFSET_SYNCS_ENABLED]:
        return None
    is_at_source = settings[keys.OFFSET_SYNCS_LOCATION] == "source"
    topic = ensure_internal_topic(
        source if is_at_source else target,
        offset_syncs_topic(settings),
        is_explicit_factor=keys.OFFSET_SYNCS_REPLICATION_FACTOR in settings,
        factor_key=keys.OFFSET_SYNCS_REPLICATION_FACTOR.name,
    )
    holder = cluster_spec(config, flow.source if is_at_source else flow.target, "producer", flow)
    return SyncsSpec(holder, topic.name, settings[keys.OFFSET_LAG_MAX])


def create_worker_topics(admin: Admin, settings: Settings) -> None:
    """Create a Connect worker's three topics where they are missing.

    Raises ConfigError for a topic that is there and not compacted: what the worker knows would be deleted with time.
    """
    create_offsets_topic(admin, settings)
    for topic, key in (
        (config_topic(settings), store_keys.CONFIG_STORAGE_REPLICATION_FACTOR),
        (status_topic(settings), store_keys.STATUS_STORAGE_REPLICATION_FACTOR),
    ):
        create_internal_topic(admin, topic, is_explicit_factor=key in settings, factor_key=key.name)
    _check_cleanup(admin, settings)


def _check_cleanup(admin: Admin, settings: Settings) -> None:
    """Where the configs may not be read, the topics are taken to be sound, as Connect does."""
    names = {
        settings[key]: key.name
        for key in (keys.OFFSET_STORAGE_TOPIC, store_keys.CONFIG_STORAGE_TOPIC, store_keys.STATUS_STORAGE_TOPIC)
    }
    described, _refused = admin.described_configs(names)
    for topic, entries in described.items():
        policy = next((entry.value for entry in entries if entry.name == "cleanup.policy"), "compact")
        if policy != "compact":
            raise ConfigError(
                f"{names[topic]}: the topic '{topic}' has cleanup.policy={policy}, so that what the worker knows would"
                " be lost with time; set its cleanup.policy to compact, or name another topic."
            )


def ensure_internal_topic(
    admin: Admin, topic: CreateTopic, *, is_explicit_factor: bool, factor_key: str = "replication.factor"
) -> CreateTopic:
    """Create the topic where it is missing; returns it as it is. Call it once per start: what is tolerated is told.

    A default replication factor bends to the number of brokers. Raises BrokerError for what MM2 does not tolerate.
    """
    try:
        return create_internal_topic(admin, topic, is_explicit_factor=is_explicit_factor, factor_key=factor_key)
    except BrokerError as error:
        if error.code not in _TAKEN_TO_EXIST:
            raise
        log.warning("%s It is taken to be there already.", error)
        return topic


def create_internal_topic(
    admin: Admin, topic: CreateTopic, *, is_explicit_factor: bool, factor_key: str = "replication.factor"
) -> CreateTopic:
    """As `ensure_internal_topic`, for a topic that must be seen: every refusal is raised."""
    view = admin.view([topic.name])
    if topic.name in view.partition_counts:
        return replace(topic, partition_count=view.partition_counts[topic.name])
    wanted, brokers = topic.replication_factor, len(view.brokers)
    factor = possible_factor(wanted, brokers, is_explicit=is_explicit_factor)
    if factor != wanted:
        log.warning("%s", bent_sentence(admin.alias, topic.name, wanted, brokers))
    possible = replace(topic, replication_factor=factor)
    refusal = admin.create_topics([possible]).get(topic.name)
    if refusal is not None:
        why = str(refusal)
        if refusal.code == INVALID_REPLICATION_FACTOR:
            why = too_large_sentence(admin.alias, factor_key, factor, brokers)
        raise BrokerError(f"The topic {topic.name} cannot be created on '{admin.alias}': {why}.", refusal.code)
    admin.wait_for_leaders({topic.name: topic.partition_count})
    return possible
