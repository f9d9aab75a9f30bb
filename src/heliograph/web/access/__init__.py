"""Decides who may call REST, and what a caller may see and change.

`authenticator` puts the parts together: `allowed_hosts` (against foreign web pages), `callers` (logins, certificates,
signatures of workers), `access_rules` (the file of rules) and `listener_tls`. `guard` holds every call of a handler to
the permissions of its caller. `reloading` reads changed files again. Knows no handler and no web framework.
"""
