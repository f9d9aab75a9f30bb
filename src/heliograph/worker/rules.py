"""The rules of a flow's topics within all flows of its file: only together do they tell what would go in circles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.mirror.topics import TopicRules
from heliograph.mirror.topology import Topology

if TYPE_CHECKING:
    from heliograph.config.mirror_config import MirrorConfig
    from heliograph.model import Flow


def topic_rules(config: MirrorConfig, flow: Flow) -> TopicRules:
    """What decides about the topics of a flow."""
    topology = Topology.of({each: config.settings(each) for each in config.enabled_flows})
    return TopicRules.of(config.settings(flow), topology)
