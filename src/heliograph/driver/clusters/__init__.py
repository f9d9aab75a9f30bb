"""Clients of a flow's clusters, made from its configuration, and the topics that MM2 needs there.

Runs on the driver. `cluster_clients` makes the clients, `internal_topic_creation` creates MM2's own topics, and
`hidden_names` finds topics and groups that a cluster hides from us.
"""
