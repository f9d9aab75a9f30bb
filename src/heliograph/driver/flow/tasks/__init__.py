"""The tasks of a flow as the driver sees them, how many there are, and which is to have which partition.

`task_supervisor` carries out what is planned here. Used only in the flow's thread.
"""
