"""The state of flows as immutable values: what the screen, the log, REST and the command line show.

`partition_status` decides the state of one partition from what is known about it, `flow_snapshot` sums up a flow,
`rate_samples` has its rates over the last seconds, `sampled_window` and `catch_up` measure over minutes, `losses` are
records that source and target do not both have, and `json_views` renders all for REST and `--json`. Pure: callers pass
the time. Imports only the shared values.
"""
