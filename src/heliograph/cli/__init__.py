"""The command line: the only package that prints. Runs on the driver and may import every other package.

`main` lists the commands and imports one when it runs. `inputs`, `output`, `signals` and `log_output` are shared by the
commands; `rest_service` serves REST beside `run`, `rest_checks` checks its settings; `connect_client` and
`connector_files` serve the commands that manage Connect; `acl_texts` renders ACLs.
"""
