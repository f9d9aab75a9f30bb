"""The part of Heliograph that runs in Spark's Python workers.

`contract` is what driver and executors agree on; `copy` is the copy itself. An executor reads no configuration: a task
gets everything in its `TaskSpec`. May import `kafka`, `wire`, `mirror` and redaction, never `driver`.
"""
