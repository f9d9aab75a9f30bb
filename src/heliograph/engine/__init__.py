"""Spark runs the tasks: session, task specification, copy loop, leases."""
