"""Reads and writes small topics of our own, blocking, with `kafka.admin`. Runs in the driver and in Connect workers.

`topic_reader` reads a topic as a whole or follows it, `record_writer` writes records, and `compacted_topic` does both
for the topics that Connect keeps its state in.
"""
