"""Repeated steps, their issues, and the pauses before something that failed is tried again.

Runs on the driver, in the threads of flows and control loops; knows no flow and no cluster. `step_runner` runs steps,
`issues` keeps and logs what failed, `restart_policy` decides on restarts, `matching_time` limits pattern matching.
"""
