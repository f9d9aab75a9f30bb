"""Connections to brokers, the event loop that serves them, and a cluster's metadata.

Runs on executors without blocking (`event_loop`, `cluster`), and blocking in any process (`connection.ask`).
`connection` is one socket, whose responses `response_decoder` checks and decodes into `buffers`; `event_loop` serves
many connections; `cluster` opens them and knows the leaders of partitions. May import `kafka/security` and below.
"""
