"""How many replicas a topic of ours can have: MM2's default factors fail on a small cluster, here they bend.

What the user wrote does not bend; where the cluster cannot hold it, the sentence names the key, the factor and the
number of brokers.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from heliograph.kafka.refusals import INVALID_REPLICATION_FACTOR, Refusal

if TYPE_CHECKING:
    from heliograph.kafka.admin import Admin
    from heliograph.mirror.topics import CreateTopic

log = logging.getLogger(__name__)


class ReplicationFactors:
    """Bends default factors to a cluster's number of brokers, and tells each kind of topic once."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._told: set[str] = set()

    def possible(self, topic: CreateTopic, *, is_explicit: bool, what: str = "") -> CreateTopic:
        """The topic with a factor that the cluster can hold; `what` names the kind of topic in the sentence."""
        wanted = topic.replication_factor
        brokers = self._broker_count()
        if is_explicit or wanted <= brokers:
            return topic
        sentence = (
            f"{self._admin.alias}: {brokers} broker(s) cannot hold {what or topic.name} with the default replication"
            f" factor {wanted}; using {brokers}"
        )
        if sentence not in self._told:
            self._told.add(sentence)
            log.warning("%s", sentence)
        return replace(topic, replication_factor=brokers)

    def explain(self, refusal: Refusal, factor: int, key: str) -> str:
        """Why a topic could not be made; where it is the factor, with the key that asks for it."""
        if refusal.code != INVALID_REPLICATION_FACTOR:
            return str(refusal)
        return (
            f"{key} is {factor}, but the cluster '{self._admin.alias}' has {self._broker_count()} broker(s);"
            f" lower {key} or add brokers"
        )

    def _broker_count(self) -> int:
        return len(self._admin.view([]).brokers)
