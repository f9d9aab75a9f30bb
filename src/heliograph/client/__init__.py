"""The library for applications: which clusters replicate to this one, and where a group resumes after a failover.

It has the meaning of Java's `MirrorClient` and `RemoteClusterUtils`, runs in the application's process, and imports
`kafka`, `mirror` and `config`, but neither Spark nor the driver:

    from heliograph.client import translate_offsets
    offsets = translate_offsets({"bootstrap.servers": "target:9092"}, "source", "my-group", timeout_s=30)
"""

from __future__ import annotations

from heliograph.client.mirror_client import (
    MirrorClient,
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
