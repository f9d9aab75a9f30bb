"""The copy of one task, on an executor: one thread, one event loop.

`copy_task` is the entry from Spark, `copy_loop` the loop with its timers. Around the loop: `copy_clients`
(connections), `record_flow` (records and acknowledgements), `copy_partition` (state of partitions), `fetch_budget` (how
much to fetch), `offset_commits` (source offsets), `sync_writer` (offset syncs), `resume` (resume points), `log_changes`
(logs that were cut, deleted or created again), `lease_client` (the driver) and `background` (blocking work). May import
`kafka`, `wire`, `mirror/groups` and `executor/contract`.
"""
