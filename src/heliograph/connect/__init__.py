"""Heliograph as a Kafka Connect worker: a group of workers, Connect's topics, and a herder that runs connectors.

Runs in the driver process. `contract` has the protocol that REST uses, `group` elects the leader, `storage` reads and
writes Connect's config and status topics, `runtime` runs connectors on the leader. `runtime` may import the others and
`driver`; `storage` may import `contract` and `group`; these two import neither each other nor the rest.
"""
