"""Spark as the driver uses it: one long-lived job per task, and a lease for each.

Runs on the driver. `spark_engine` starts and stops tasks, `lease_server` takes their reports, `spark_session` starts
Spark, `jvm_samples` asks its JVM, `secret_transport` decides whether secrets may travel. Only `spark_engine` imports
the copy itself.
"""
