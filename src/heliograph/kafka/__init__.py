"""Kafka's protocol as a client: security, connections, fetching, producing, administration, small topics.

Runs on executors (`fetch`, `produce`) and in any process (`admin`, `topics`); `net` and `security` serve both. Knows
no rule of MM2. Requests are built from kafka-python's schemas; connections, retries and the hot path are our own. May
import `wire`, `mirror`, `config` and the values of `model`.
"""
