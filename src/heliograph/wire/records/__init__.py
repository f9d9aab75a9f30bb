"""Formats of the records in internal topics of MM2 and Connect, byte for byte as Java writes them.

Pure; used by the driver, executors and Connect workers. `mirror_records` are those of MM2 (offset syncs, checkpoints,
heartbeats), `connect_*` those of Connect's offset, config and status topics, which `connect_json` encodes. A record
that cannot be read decodes to None, never to an error. May import `wire/batches`.
"""
