"""Altering single configs of topics (IncrementalAlterConfigs, brokers from Kafka 2.3 on).

Older brokers know only AlterConfigs, which resets every config that the request does not name: among them those that
others have set on the target on purpose. We never send it; such a cluster is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol.admin import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

from heliograph.errors import BrokerError
from heliograph.kafka.refusals import UNSUPPORTED_VERSION, Refusal, refusal_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heliograph.kafka.admin import Admin
    from heliograph.mirror.config_sync import AlterConfigs, ConfigChange

INVALID_CONFIG = 40
_TOPIC_RESOURCE = 2
_SET, _DELETE = 0, 1
_TOPICS_PER_REQUEST = 200


def alter_topic_configs(admin: Admin, alters: Sequence[AlterConfigs]) -> dict[str, Refusal]:
    """Make the changes; returns the reason for each topic that was refused, of which nothing was changed.

    Raises BrokerError with UNSUPPORTED_VERSION where the cluster cannot alter single configs.
    """
    refused: dict[str, Refusal] = {}
    for at in range(0, len(alters), _TOPICS_PER_REQUEST):
        answer = _ask(admin, alters[at : at + _TOPICS_PER_REQUEST])
        refused |= {
            response.resource_name: refusal_of(response, "ALTER_CONFIGS on the topic")
            for response in answer.responses
            if response.error_code
        }
    return refused


def can_alter_configs(admin: Admin) -> bool:
    """Whether the cluster can alter single configs; asked by a request that names no topic."""
    try:
        _ask(admin, (), validate_only=True)
    except BrokerError as error:
        if error.code != UNSUPPORTED_VERSION:
            raise
        return False
    return True


def _ask(admin: Admin, alters: Sequence[AlterConfigs], *, validate_only: bool = False) -> Any:
    resource_class = IncrementalAlterConfigsRequest.AlterConfigsResource

    def build(version: int) -> Any:
        return IncrementalAlterConfigsRequest(
            version=version,
            resources=[
                resource_class(
                    resource_type=_TOPIC_RESOURCE,
                    resource_name=alter.topic,
                    configs=[_alterable(change) for change in alter.changes],
                )
                for alter in alters
            ],
            validate_only=validate_only,
        )

    try:
        return admin.ask_any(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, build, newest=1)
    except BrokerError as error:
        if error.code != UNSUPPORTED_VERSION:
            raise
        raise BrokerError(
            f"The cluster '{admin.alias}' is older than Kafka 2.3 and cannot alter single configs of a topic;"
            " remote topics keep the configs they were created with.",
            error.code,
        ) from None


def _alterable(change: ConfigChange) -> Any:
    return IncrementalAlterConfigsRequest.AlterConfigsResource.AlterableConfig(
        name=change.name, config_operation=_DELETE if change.new is None else _SET, value=change.new
    )
