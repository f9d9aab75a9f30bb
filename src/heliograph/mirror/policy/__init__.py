"""Names remote topics, and filters topics, groups and topic configs. Pure; imports only `config`.

`replication_policy` names remote topics, by a map of names if the user wants one (`rename_map`). `filters` choose by
lists of patterns; `change_rules` choose actions by topic. `plugins` loads custom classes, and `class_checks` checks a
class name before a connector is stored. Custom policies derive from the classes exported here.
"""

from heliograph.mirror.policy.replication_policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)

__all__ = ["DefaultReplicationPolicy", "IdentityReplicationPolicy", "ReplicationPolicy"]
