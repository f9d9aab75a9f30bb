"""Administration of a cluster over connections that block: topics, configs, offsets, groups, ACLs, fencing.

Runs in the driver and in any other process, never on the data path. `admin` sends requests to a broker, any broker or
the controller; the other modules build on it. `coordinators` finds group coordinators for `consumer_groups` and
`share_groups`. Not thread-safe: each loop has its own client. May import `kafka/net` and below.
"""
