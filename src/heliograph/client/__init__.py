"""For applications: what a cluster has received from others, and where a consumer group goes on after a move.

The meaning of Java's `MirrorClient` and `RemoteClusterUtils`, in Python:

    from heliograph.client import translate_offsets
    offsets = translate_offsets({"bootstrap.servers": "target:9092"}, "source", "my-group", timeout_s=30)
"""

from __future__ import annotations

from heliograph.client.mirror_client import MirrorClient

__all__ = [
    "MirrorClient",
    "checkpoint_topics",
    "heartbeat_topics",
    "replication_hops",
    "translate_offsets",
    "upstream_clusters",
]
