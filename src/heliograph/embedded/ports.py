"""Ports for servers that are about to start.

Not those the system itself would choose: between our look and the server's start it could give such a one to any
connection that leaves this machine, and on a busy machine it does.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

from heliograph.embedded.process import HOST

_LOWEST = 10_240
_SYSTEMS_OWN = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_LOWEST_OF_THE_SYSTEM = 32_768
_MOST_TRIES = 1_000


def free_ports(count: int) -> list[int]:
    """So many different ports that nobody listens on just now."""
    highest = _lowest_of_the_system() - 1
    found: set[int] = set()
    for _try in range(_MOST_TRIES):
        if len(found) == count:
            return sorted(found)
        port = random.randint(_LOWEST, highest)  # noqa: S311  (nobody need be surprised)
        if port not in found and _is_free(port):
            found.add(port)
    return [_any_port() for _ in range(count)]


def _lowest_of_the_system() -> int:
    try:
        lowest = int(_SYSTEMS_OWN.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL_LOWEST_OF_THE_SYSTEM
    return lowest if lowest > 2 * _LOWEST else _USUAL_LOWEST_OF_THE_SYSTEM


def _is_free(port: int) -> bool:
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True


def _any_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])
