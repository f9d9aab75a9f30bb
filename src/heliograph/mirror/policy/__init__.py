"""Names of remote topics, and the filters that choose topics, groups and topic configs. Pure; imports only `config`.

`replication_policy` and `rename_map` name remote topics, `filters` choose, `plugins` loads the classes that users
write, and `class_checks` judges a class name before a connector is stored. User classes derive from the names
exported here.
"""

from heliograph.mirror.policy.replication_policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)

__all__ = ["DefaultReplicationPolicy", "IdentityReplicationPolicy", "ReplicationPolicy"]
