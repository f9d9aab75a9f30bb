"""The driver: keeps the flows of a file or the connectors of a worker running; the data itself is copied by executors.

Runs in `heliograph run` and `heliograph worker`. May import `executor/contract`, `kafka/admin`, `kafka/topics` and
everything below. `clusters`, `spark` and `steps` do not know each other; `flow` uses all three, `loops` adds the
checkpoint and heartbeat connectors.
"""
