"""Rules about topics: which are replicated, with which configs and ACLs, and which tasks copy them. Pure.

`topic_rules` decides about a topic, with `topology` for cycles over several flows; `topic_configs` and `topic_acls`
plan what follows the source's; `internal_topics` describes MM2's own topics; `task_assignment` counts tasks and assigns
partitions. Imports `mirror/policy` and `config`; `driver` and `operations` apply the plans.
"""
