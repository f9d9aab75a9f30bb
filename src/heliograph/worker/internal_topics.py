"""Making the topics MM2 keeps for itself: progress, offset syncs, checkpoints, heartbeats.

MM2's tolerance: whoever may not create topics on a cluster has often been given them ready-made. So a refusal for lack
of permission, or of a broker too old to create topics, means "it is taken to be there"; anything else is an error.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.errors import BrokerError
from heliograph.kafka.refusals import CLUSTER_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, UNSUPPORTED_VERSION
from heliograph.worker.replication_factor import ReplicationFactors

if TYPE_CHECKING:
    from heliograph.kafka.admin import Admin
    from heliograph.mirror.topics import CreateTopic

log = logging.getLogger(__name__)

_TAKEN_TO_EXIST = frozenset({UNSUPPORTED_VERSION, TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED})


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
    existing = admin.view([topic.name]).partition_counts.get(topic.name)
    if existing is not None:
        return replace(topic, partition_count=existing)
    factors = ReplicationFactors(admin)
    possible = factors.possible(topic, is_explicit=is_explicit_factor)
    refusal = admin.create_topics([possible]).get(topic.name)
    if refusal is not None:
        why = factors.explain(refusal, possible.replication_factor, factor_key)
        raise BrokerError(f"The topic {topic.name} cannot be created on '{admin.alias}': {why}.", refusal.code)
    admin.wait_for_leaders({topic.name: topic.partition_count})
    return possible
