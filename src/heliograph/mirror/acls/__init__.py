"""The ACLs that a flow's own clients need on the clusters. Pure.

`flow_acls` lists them by client, with reasons; `acl` reduces a list to the fewest; `name_prefixes` turns patterns into
names and prefixes. Imports `mirror/topics` and `mirror/policy`. ACLs that are copied are in `mirror/topics/topic_acls`.
"""
