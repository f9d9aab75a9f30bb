"""Making the topics MM2 keeps for itself: progress, offset syncs, checkpoints, heartbeats.

MM2's tolerance: whoever may not create topics on a cluster has often been given them ready-made. So a refusal for lack
of permission, or of a broker too old to create topics, means "it is taken to be there"; anything else is an error.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.keys import worker_keys
from heliograph.errors import BrokerError, ConfigError
from heliograph.kafka.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    INVALID_CONFIG,
    INVALID_REPLICATION_FACTOR,
    POLICY_VIOLATION,
    TOPIC_AUTHORIZATION_FAILED,
    UNSUPPORTED_VERSION,
)
from heliograph.mirror.topics.internal_topics import (
    bent_sentence,
    config_topic,
    offset_syncs_topic,
    offsets_topic,
    possible_factor,
    status_topic,
    too_large_sentence,
)

if TYPE_CHECKING:
    from heliograph.config.resolve.settings import Settings
    from heliograph.kafka.admin.admin import Admin
    from heliograph.model import CreateTopic


log = logging.getLogger(__name__)

_REFUSED_CONFIGS = frozenset({INVALID_CONFIG, POLICY_VIOLATION})
_TAKEN_TO_EXIST = frozenset({UNSUPPORTED_VERSION, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED})


def create_offsets_topic(admin: Admin, settings: Settings) -> CreateTopic:
    """Create the topic of progress where it is missing; returns it with the partitions it really has."""
    return create_internal_topic(
        admin,
        offsets_topic(settings),
        is_explicit_factor=keys.OFFSET_STORAGE_REPLICATION_FACTOR in settings,
        factor_key=keys.OFFSET_STORAGE_REPLICATION_FACTOR.name,
    )


def create_worker_topics(admin: Admin, settings: Settings) -> None:
    """Create a Connect worker's three topics where they are missing.

    Raises ConfigError for a topic that is there and not compacted: what the worker knows would be deleted with time.
    """
    create_offsets_topic(admin, settings)
    for topic, key in (
        (config_topic(settings), worker_keys.CONFIG_STORAGE_REPLICATION_FACTOR),
        (status_topic(settings), worker_keys.STATUS_STORAGE_REPLICATION_FACTOR),
    ):
        create_internal_topic(admin, topic, is_explicit_factor=key in settings, factor_key=key.name)
    _check_cleanup(admin, settings)


def _check_cleanup(admin: Admin, settings: Settings) -> None:
    """Where the configs may not be read, the topics are taken to be sound, as Connect does."""
    names = {
        settings[key]: key.name
        for key in (keys.OFFSET_STORAGE_TOPIC, worker_keys.CONFIG_STORAGE_TOPIC, worker_keys.STATUS_STORAGE_TOPIC)
    }
    described, _refused = admin.described_configs(names)
    for topic, entries in described.items():
        policy = next((entry.value for entry in entries if entry.name == "cleanup.policy"), "compact")
        if policy != "compact":
            raise ConfigError(
                f"the topic '{topic}' has cleanup.policy={policy}, so that what the worker knows would"
                " be lost with time; set its cleanup.policy to compact, or name another topic.",
                names[topic],
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


def ensure_offset_syncs_topic(admin: Admin, settings: Settings) -> CreateTopic:
    """The topic of offset syncs; with MM2's configs alone where the cluster refuses ours."""
    key = keys.OFFSET_SYNCS_REPLICATION_FACTOR
    is_explicit, topic = key in settings, offset_syncs_topic(settings)
    try:
        return ensure_internal_topic(admin, topic, is_explicit_factor=is_explicit, factor_key=key.name)
    except BrokerError as error:
        if error.code not in _REFUSED_CONFIGS:
            raise
        plain = replace(topic, configs=topic.configs[:1])
        return ensure_internal_topic(admin, plain, is_explicit_factor=is_explicit, factor_key=key.name)


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
    lack = admin.wait_for_leaders({topic.name: topic.partition_count}).get(topic.name)
    if lack is not None:
        raise BrokerError(f"The topic {topic.name} on '{admin.alias}' cannot be used: {lack}.", lack.code)
    return possible
