"""Where the driver listens for its tasks, and by which name they find it: Spark's own settings, used as Spark does.

A driver in a container, or behind address translation, is reached from outside by a name that is none of its own
machine's: `spark.driver.host` is what executors are told, `spark.driver.bindAddress` is where to listen. Such a driver
also needs a port that is known before: `spark.heliograph.lease.port`, beside `spark.driver.port`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

_HOST, _BIND_ADDRESS, _PORT = "spark.driver.host", "spark.driver.bindAddress", "spark.heliograph.lease.port"
_MOST_PORTS = 65_536


class LeasePlace(NamedTuple):
    """`bind_address` and `port` (0: any) are where to listen, `host` is what tasks are told."""

    bind_address: str
    host: str
    port: int = 0

    def refusal(self, error: OSError) -> EngineError:
        """The driver cannot listen there."""
        why = error.strerror or str(error)
        return EngineError(
            f"The driver cannot listen for its tasks at {self.bind_address} (port {self.port or 'any'}): {why}. Set"
            f" {_BIND_ADDRESS} to an address of its own machine, and {_HOST} to the name by which executors reach it."
        )


OWN_MACHINE = LeasePlace("127.0.0.1", "127.0.0.1")


def lease_place(setting: Callable[[str, str], str]) -> LeasePlace:
    """By the settings of a running Spark; `setting` takes a name and what holds where it is not set."""
    host = setting(_HOST, "")
    port = setting(_PORT, "0")
    if not port.isdecimal() or int(port) >= _MOST_PORTS:
        raise EngineError(f"{_PORT} must be a port, or 0 for any; it is '{port}'.")
    return LeasePlace(_bare(setting(_BIND_ADDRESS, host)), _bare(host), int(port))


def _bare(host: str) -> str:
    """Spark writes an IPv6 address in brackets; sockets want it without."""
    return host.removeprefix("[").removesuffix("]")
