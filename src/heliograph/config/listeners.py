"""Where the REST server listens and under which address other workers reach it, from the keys of a worker's file.

`listeners` counts; where it is not set, `rest.host.name` and `rest.port`, which Kafka 3.0 removed and many files still
have. Connect listens on every network unless a host is named; we listen on this machine only, because whoever reaches
the API may start, stop and redirect replication unless a login is asked for (docs/guides/security-rest.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from heliograph.config import worker_keys as keys
from heliograph.config.types import Settings
from heliograph.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heliograph.config.placeholders import Resolver

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8083
_LARGEST_PORT = 65_535
_THIS_MACHINE = frozenset({LOOPBACK, "localhost", "::1"})
_EVERY_NETWORK = frozenset({"0.0.0.0", "::"})  # noqa: S104  (compared with, not bound to)


class Listener(NamedTuple):
    """A host and a port; port 0 takes a free one."""

    host: str
    port: int
    is_https: bool = False

    @property
    def is_everywhere(self) -> bool:
        """Whether every network of the machine reaches it."""
        return self.host in _EVERY_NETWORK

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return self.host in _THIS_MACHINE

    @property
    def url(self) -> str:
        """Its address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_https else 'http'}://{host}:{self.port}"


def rest_listeners(settings: Settings) -> tuple[Listener, ...]:
    """The listeners, in the file's order; raises ConfigError for what is none."""
    if keys.LISTENERS in settings:
        name = settings.written_as(keys.LISTENERS)
        found = tuple(_listener(name, text) for text in settings[keys.LISTENERS])
        if not found:
            raise ConfigError(f"{name}: it is empty; name at least one address such as http://:{DEFAULT_PORT}.")
        return found
    port = settings[keys.REST_PORT]
    host = _unquoted(settings[keys.REST_HOST_NAME]) or LOOPBACK
    if port is None:
        return (Listener(host, DEFAULT_PORT),)
    return (Listener(host, _checked_port(settings.written_as(keys.REST_PORT), port)),)


def file_listeners(raw: Mapping[str, str], resolver: Resolver) -> tuple[Listener, ...]:
    """Where a dedicated-mode file wants REST: nowhere unless it says so, since two may run on one machine."""
    rows = (keys.LISTENERS, keys.REST_PORT, keys.REST_HOST_NAME)
    settings = Settings({row.name: resolver.resolve(row.name, raw[row.name]) for row in rows if row.name in raw})
    return rest_listeners(settings) if keys.LISTENERS in settings or keys.REST_PORT in settings else ()


def parse_listener(name: str, text: str) -> Listener:
    """`PORT`, `HOST:PORT` or a URL, as on a command line; `name` is what it is given by."""
    if "://" in text:
        return _listener(name, text.strip())
    host, _colon, port = text.strip().rpartition(":")
    if not port.isdecimal():
        raise ConfigError(f"{name} {text}: write it as PORT or HOST:PORT, such as {DEFAULT_PORT}.")
    return Listener(host.strip("[]") or LOOPBACK, _checked_port(name, int(port)))


def advertised_listener(settings: Settings, all_bound: Sequence[Listener], own_host: str) -> Listener:
    """How other workers reach this one: as the file says, else where it is bound, else by this machine's name.

    Of several listeners an https one is told, where Java would tell http: what callers send is passed on under it.
    """
    bound = _told_to_others(settings, all_bound)
    host = _unquoted(settings[keys.REST_ADVERTISED_HOST_NAME]) or (own_host if bound.is_everywhere else bound.host)
    port = settings[keys.REST_ADVERTISED_PORT]
    if port is None:
        return bound._replace(host=host)
    return bound._replace(host=host, port=_checked_port(settings.written_as(keys.REST_ADVERTISED_PORT), port))


def _told_to_others(settings: Settings, bound: Sequence[Listener]) -> Listener:
    wanted = settings[keys.REST_ADVERTISED_LISTENER].lower()
    if not wanted:
        return next((listener for listener in bound if listener.is_https), bound[0])
    for listener in bound:
        if listener.url.startswith(f"{wanted}://"):
            return listener
    name = settings.written_as(keys.REST_ADVERTISED_LISTENER)
    raise ConfigError(f"{name}: there is no {wanted} listener; name one in `listeners`, or remove the key.")


def _listener(name: str, text: str) -> Listener:
    problem = (
        f"{name}: '{text}' is not an address; write it as http://HOST:PORT or https://HOST:PORT, such as"
        f" http://:{DEFAULT_PORT}."
    )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(problem) from None
    if parts.scheme.lower() not in ("http", "https") or port is None or parts.path.strip("/") or parts.query:
        raise ConfigError(problem)
    return Listener(host or LOOPBACK, port, parts.scheme.lower() == "https")


def _checked_port(name: str, port: int) -> int:
    if not 0 <= port <= _LARGEST_PORT:
        raise ConfigError(f"{name}: {port} is not a port; it must be between 0 and {_LARGEST_PORT}.")
    return port


def _unquoted(host: str) -> str:
    """A host without the quotes that container files often carry into the value."""
    return host.strip("\"'")
