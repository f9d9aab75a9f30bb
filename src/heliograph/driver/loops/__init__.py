"""The checkpoint and heartbeat connectors, as work of a `ControlLoop`.

Runs on the driver. `checkpoint_sync` and `heartbeats` are the two connectors, `noted_offsets` writes their Connect
offsets, `file_loops` runs those of a dedicated-mode file.
"""
