"""The checkpoint and heartbeat connectors, as work of a `ControlLoop`.

Runs on the driver. `checkpoint_sync` and `heartbeats` are the two connectors, `noted_offsets` writes their Connect
offsets, `checkpoint_status` keeps what metrics show, `file_loops` runs those of a dedicated-mode file.
"""
