"""Connect's own topics: connectors and their tasks (`config_store`), their states (`status_store`).

Reads return immutable snapshots and never wait for a broker. `leader_writes` lets only the leader write configs. The
formats of the records are in `wire/records`.
"""
