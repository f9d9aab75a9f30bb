"""Bytes: Kafka's messages, record batches, and the records of MM2 and Connect.

Pure: no socket, clock, thread, log or client library; runs everywhere. `messages` has the responses and requests that
the data path decodes and encodes itself, `batches` checks and rewrites record batches, `records` are the formats of
internal topics. May import `model` and `errors`; `records` builds on `batches`, and `batches` on `messages`.
"""
