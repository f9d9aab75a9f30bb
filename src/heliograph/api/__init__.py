"""Kafka Connect's REST API over a herder: routes and refusals in tables, handlers in small files, one server."""
