"""Runs connectors: what REST requests becomes records in Connect's topics, and what the topics contain is what runs.

`connect_worker` puts a worker together. `connect_herder` implements the herder: `connector_view` reads,
`connector_changes` checks and writes. `reconciler` follows the topics on one thread and, on the leader, advances a
`connector_slot` for each connector, whose `connector_run` is a flow or a loop of `driver`; `status_publisher` writes
their states. `connector_offsets` reads and alters source offsets. `process_view` assembles what metrics show.
`file_herder` is the read-only herder of `run`.
"""
