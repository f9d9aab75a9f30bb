"""Creates MM2's internal topics: offsets, offset syncs, checkpoints, heartbeats.

As in MM2, a refusal for lack of permission, or by a broker too old to create topics, means that the topic is assumed to
exist: an administrator has often created it beforehand. Any other refusal is an error.
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
_ASSUMED_TO_EXIST = frozenset({UNSUPPORTED_VERSION, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED})


def create_offsets_topic(admin: Admin, settings: Settings) -> CreateTopic:
    """Create the offsets topic if it is missing; return it with its actual number of partitions."""
    return create_internal_topic(
        admin,
        offsets_topic(settings),
        is_explicit_factor=keys.OFFSET_STORAGE_REPLICATION_FACTOR in settings,
        factor_key=keys.OFFSET_STORAGE_REPLICATION_FACTOR.name,
    )


def create_worker_topics(admin: Admin, settings: Settings) -> None:
    """Create a Connect worker's three topics if they are missing.

    Raises ConfigError for an existing topic that is not compacted: the worker's state would be deleted with time.
    """
    create_offsets_topic(admin, settings)
    for topic, key in (
        (config_topic(settings), worker_keys.CONFIG_STORAGE_REPLICATION_FACTOR),
        (status_topic(settings), worker_keys.STATUS_STORAGE_REPLICATION_FACTOR),
    ):
        create_internal_topic(admin, topic, is_explicit_factor=key in settings, factor_key=key.name)
    _check_cleanup(admin, settings)


def _check_cleanup(admin: Admin, settings: Settings) -> None:
    """Check that the topics are compacted. If their configs may not be read they are assumed to be, as in Connect."""
    names = {
        settings[key]: key.name
        for key in (keys.OFFSET_STORAGE_TOPIC, worker_keys.CONFIG_STORAGE_TOPIC, worker_keys.STATUS_STORAGE_TOPIC)
    }
    described, _refused = admin.described_configs(names)
    for topic, entries in described.items():
        policy = next((entry.value for entry in entries if entry.name == "cleanup.policy"), "compact")
        if policy != "compact":
            raise ConfigError(
                f"the topic '{topic}' has cleanup.policy={policy}, so that the worker's state would be deleted with"
                " time; set its cleanup.policy to compact, or name another topic.",
                names[topic],
            )


def ensure_internal_topic(
    admin: Admin, topic: CreateTopic, *, is_explicit_factor: bool, factor_key: str = "replication.factor"
) -> CreateTopic:
    """Create the topic if it is missing; return it as it exists. Call it once per start: it logs tolerated refusals.

    A default replication factor is lowered to the number of brokers. Raises BrokerError for other refusals.
    """
    try:
        return create_internal_topic(admin, topic, is_explicit_factor=is_explicit_factor, factor_key=factor_key)
    except BrokerError as error:
        if error.code not in _ASSUMED_TO_EXIST:
            raise
        log.warning("%s It is assumed to exist already.", error)
        return topic


def ensure_offset_syncs_topic(admin: Admin, settings: Settings) -> CreateTopic:
    """Ensure the offset-syncs topic; with MM2's configs alone if the cluster refuses ours."""
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
    """Do the same as `ensure_internal_topic` for a topic that must be visible: every refusal is raised."""
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
