"""The knowledge of a flow about its partitions and tasks, from their reports. Runs in the driver.

`partition_rows` has the partitions, `task_reports` what holds for a whole task, `flow_sums` the sums and rates over
partitions. `driver/flow/flow_status` combines them; nothing here imports the flow. Safe to use from any thread.
"""
