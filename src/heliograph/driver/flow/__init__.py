"""The source connector of one flow.

Runs on the driver, each flow in a thread of its own. `source_flow` is the thread and its queue of events, of which
`pending_reports` keeps the reports of tasks; `flow_life_cycle` has the phases of a flow. `task_supervisor` starts and
restarts tasks: `flow_task` is one of them, `task_spec_builder` makes its payload. `flow_steps` runs `topic_sync`,
`config_sync` and `acl_sync`. `flow_status` is what the screen, REST and the log read; `state` has its parts.
"""
