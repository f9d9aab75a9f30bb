"""One module per command or group of commands. `cli/main` imports a module when its command runs.

A command parses its options, calls `operations`, `driver` or `connect`, and prints. No command imports another.
"""
