"""Operations of the commands: check a configuration, plan a flow, list ACLs, show and move groups.

They run in the process of a command or of a REST server, read clusters with the clients of `driver/clusters`, and
return values, which `cli` and `web` print. Only `failover` changes a cluster. May import `driver` and the layers below.

`configuration_checks` and `named_files` check a configuration; `flow_plan` plans a flow and finds `missing_acls`;
`needed_acls` lists ACLs by `principals`; `flow_groups` reads groups, and `failover` moves them.
"""
