"""Kafka's wire: sockets, authentication, metadata, fetch, idempotent produce, admin. Schemas are kafka-python's."""
