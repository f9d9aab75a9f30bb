"""Connect's REST API over HTTP, for `heliograph worker` and, for reading, `heliograph run`. Runs in the driver process.

`server` speaks HTTP and forwards to the leader, `endpoints` has the table of routes and the handlers, `access` decides
who may call what; each may import those named after it. `exchange` and `error_responses` are below all three. Of a
worker the package knows only `connect.contract`.
"""
