"""Examinations: every problem, warning and note about a configuration, as diagnostics.

Pure; may import all of `config`. `dedicated_file` examines files of clusters and flows (with `cluster_list`,
`key_names` and `contradictions`), `worker_file` a Connect worker's, `connector_validation` a connector in the words of
Connect's REST (with `connector_definitions`). What needs more than text (clients, classes, files) is tried by
`operations/configuration_checks`.
"""
