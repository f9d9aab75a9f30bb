"""Configurations as typed objects. Pure; imports `resolve` and `keys`.

`mirror_config` has the protocol that the driver reads and its implementation for a dedicated-mode file,
`connect_config` the worker and its connectors, `rest_config` listeners and access of REST, `key_origins` the reasons
why a key has its value (`heliograph explain`).
"""
