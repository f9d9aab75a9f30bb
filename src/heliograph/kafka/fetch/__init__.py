"""Pipelined reading of a task's partitions, without blocking; runs on executors, on the loop of the copy.

`fetcher` is what callers see. It combines `fetch_placement` (which broker and lane reads a partition),
`fetch_positions` (at which offset, with `log_ends` and `continuity`) and `fetch_requests` (sizes and sends requests).
`fetch_lanes` holds their shared values: partitions, lanes with their fetch sessions, retries. May import `kafka/net`
and below.
"""
