"""Ports for servers that are about to start.

Not those the system itself would choose: between our look and the server's start it could give such a one to any
connection that leaves this machine, and on a busy machine it does.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from heliograph.embedded.process import HOST

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOWEST = 10_240
_SYSTEMS_OWN = Path("/proc/sys/net/ipv4/ip_local_port_range")
_USUAL_LOWEST_OF_THE_SYSTEM = 32_768
_MOST_TRIES = 1_000
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """So many different ports that nobody listens on just now, and that were not given out here before."""
    among = candidates()
    found: set[int] = set()
    for _try in range(_MOST_TRIES):
        if len(found) == count:
            _given.update(found)
            return sorted(found)
        port = random.choice(among)  # noqa: S311  (nobody need be surprised)
        if port not in found | _given and _is_free(port):
            found.add(port)
    return [_any_port() for _ in range(count)]


def candidates() -> Sequence[int]:
    """The ports to choose from; processes that start servers at the same time may agree on a share each."""
    return range(_LOWEST, _lowest_of_the_system())


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
