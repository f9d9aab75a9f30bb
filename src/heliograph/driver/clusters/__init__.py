"""Clients of a flow's clusters, made from its configuration, and the topics that MM2 needs there.

Runs on the driver. `cluster_specs` makes values and `cluster_clients` clients from a configuration,
`internal_topic_creation` creates MM2's own topics, `hidden_names` finds topics and groups that a cluster hides from us,
`certificates` reads when certificates end.
"""
