"""Kafka clients of our own: connections, fetching, producing, administration. They know no rule of MirrorMaker.

They run in executors (net, fetch, produce: one thread, one event loop per task) and in the driver, REST and the
commands (admin, topics: blocking). They may import wire, parts of config, model, errors and states.

    topics       small topics of our own, read and written by the driver
    admin        blocking requests about topics, groups, ACLs; fencing of producers
    fetch        reads partitions in an event loop
    produce      writes partitions in an event loop, idempotent or in transactions
    net          connections, buffers, the event loop, metadata
    security     TLS, SASL and OAuth of a connection

`own_records` builds batches, `error_codes` is the table of Kafka's errors, `backoff` and `request_options` are shared.
"""
