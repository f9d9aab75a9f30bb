"""The values and messages that the driver and its tasks exchange; used on both sides.

`task_spec` is sent with a task when it starts; `lease` carries `task_report`s to the driver and assignments back;
`source_offsets` reads the offsets that a task commits. Values and their encodings, no decisions. Never imports `copy`
or `driver`.
"""
