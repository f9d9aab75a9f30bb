"""Elects one leader among the workers of a Kafka group.

`leadership` has the rules and why two members never lead at once (pure), `group_protocol` the four requests of Kafka's
group protocol, `membership` the threads that join, send heartbeats and report changes. Knows no topic of Connect.
"""
