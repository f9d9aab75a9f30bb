"""The contract between a worker and REST: the `Herder` protocol with its values, the table of refusals, and log levels.

All that `web` knows of a worker. No sockets, threads of its own or client libraries.
"""
