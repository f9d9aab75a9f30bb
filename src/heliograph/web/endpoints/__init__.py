"""The endpoints of Connect's REST API: the table of `routes`, and handlers as plain functions over the herder.

`request_bodies` parses bodies, `connector_endpoints`, `flow_endpoints` and `worker_endpoints` are the handlers,
`metric_pages` renders metrics. Knows no web framework.
"""
