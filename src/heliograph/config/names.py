"""A name as written in a dedicated-mode file, taken apart: `A->B.source.consumer.x` is the key `x` of a role of a flow.

Aliases may hold dots and each other's beginnings, so a name is compared with the known aliases, longest first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from heliograph.config.keys import TABLE
from heliograph.model import Flow

ROLES = ("consumer", "producer", "admin")
SIDES = ("source", "target")


@dataclass(frozen=True, slots=True)
class WrittenName:
    """`prefix` + `key` is the name; the rest says what the prefix means: nothing at the top of the file."""

    prefix: str
    key: str
    flow: Flow | None = None
    alias: str | None = None
    side: str = ""
    role: str = ""  # consumer, producer or admin; "cluster" behind a side

    @property
    def name(self) -> str:
        """As it is written."""
        return self.prefix + self.key


def parse_name(name: str, clusters: tuple[str, ...]) -> WrittenName:
    """Take a name apart by the aliases of the file."""
    flow = flow_of(name, clusters)
    if flow is not None:
        return _with_role(WrittenName(f"{flow}.", name.removeprefix(f"{flow}."), flow=flow))
    for alias in sorted(clusters, key=len, reverse=True):
        if name.startswith(f"{alias}."):
            return _with_role(WrittenName(f"{alias}.", name.removeprefix(f"{alias}."), alias=alias))
    return _with_role(WrittenName("", name))


def flow_of(name: str, clusters: tuple[str, ...]) -> Flow | None:
    """The flow a name begins with, or None."""
    longest_first = sorted(clusters, key=len, reverse=True)
    for source in longest_first:
        for target in longest_first:
            if name.startswith(f"{source}->{target}."):
                return Flow(source, target)
    return None


def _with_role(written: WrittenName) -> WrittenName:
    if written.key in TABLE:  # `consumer.poll.timeout.ms` and `source.cluster.alias` only look like a role's
        return written
    prefixes = [(f"{role}.", "", role) for role in ROLES]
    if written.flow is not None:
        prefixes = [
            *((f"{side}.{role}.", side, role) for side in SIDES for role in (*ROLES, "cluster")),
            *((f"{role}.override.", "", role) for role in ROLES),
            *prefixes,
        ]
    for prefix, side, role in prefixes:
        if written.key.startswith(prefix):
            rest = written.key.removeprefix(prefix)
            return replace(written, prefix=written.prefix + prefix, key=rest, side=side, role=role)
    return written
