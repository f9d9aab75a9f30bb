"""For applications: what a cluster has received from others, and where a consumer group goes on after a move.

The meaning of Java's `MirrorClient` and `RemoteClusterUtils`, in Python:

    from heliograph.client import translate_offsets
    offsets = translate_offsets({"bootstrap.servers": "target:9092"}, "source", "my-group", timeout_s=30)
"""

from heliograph.client.mirror_client import MirrorClient
from heliograph.client.remote_cluster import (
    checkpoint_topics,
    heartbeat_topics,
    replication_hops,
    translate_offsets,
    upstream_clusters,
)

__all__ = [
    "MirrorClient",
    "checkpoint_topics",
    "heartbeat_topics",
    "replication_hops",
    "translate_offsets",
    "upstream_clusters",
]
