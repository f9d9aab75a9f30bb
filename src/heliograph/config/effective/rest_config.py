"""The REST server's configuration: where it listens, how other workers reach it, and what it asks of callers.

`listeners` counts; without it `rest.host.name` and `rest.port`, which Kafka 3.0 removed and many files still have.
Connect listens on every network unless a host is named; Heliograph listens on this machine only, because everyone who
reaches the API may start, stop and redirect replication unless a login is required (docs/guides/security-rest.md).

Two rules are Connect's own. `listeners.https.ssl.*` counts as a whole: if one key has that prefix, the `ssl.*` of the
file are not read. And the login is an extension, `BasicAuthSecurityRestExtension`, whose users are in a file that the
section `KafkaConnect` of a JAAS file names. There is no JVM to give that JAAS file to, so a key or the variable
`KAFKA_OPTS` names it. An extension that is not there is refused: it may be the one that was to keep strangers out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

from heliograph.config.keys import worker_keys as keys
from heliograph.config.resolve.settings import Settings
from heliograph.errors import ConfigError, try_both

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heliograph.config.resolve.placeholders import Lookup, Resolver


LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8083
_LARGEST_PORT = 65_535
_THIS_MACHINE = frozenset({LOOPBACK, "localhost", "::1"})
_EVERY_NETWORK = frozenset({"0.0.0.0", "::"})  # noqa: S104  (compared with, not bound to)
ClientAuth = Literal["none", "requested", "required"]
_NO_AUTH: ClientAuth = "none"
HTTPS_PREFIX = "listeners.https."
_OWN_KEYS = (
    keys.SSL_CLIENT_AUTH,
    keys.REST_EXTENSION_CLASSES,
    keys.REST_JAAS_CONFIG_FILE,
    keys.REST_RULES_FILE,
    keys.REST_ADVERTISED_HOST_NAME,
    keys.REST_ALLOWED_HOSTS,
    keys.ACCESS_CONTROL_ALLOW_ORIGIN,
)
_HOST = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
_BASIC_AUTH = "BasicAuthSecurityRestExtension"
_BASIC_AUTH_CLASS = f"org.apache.kafka.connect.rest.basic.auth.extension.{_BASIC_AUTH}"
_OPTS_VARIABLE = "KAFKA_OPTS"
_JAAS_PROPERTY = "java.security.auth.login.config"


class RestListener(NamedTuple):
    """A host and a port; port 0 takes a free one."""

    host: str
    port: int
    is_https: bool = False

    @property
    def is_everywhere(self) -> bool:
        """Return whether every network of the machine reaches it."""
        return self.host in _EVERY_NETWORK

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine reaches it."""
        return self.host in _THIS_MACHINE

    @property
    def url(self) -> str:
        """Its address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_https else 'http'}://{host}:{self.port}"


def rest_listeners(settings: Settings) -> tuple[RestListener, ...]:
    """The listeners, in the file's order; raises ConfigError for what is none."""
    if keys.LISTENERS in settings:
        name = settings.written_as(keys.LISTENERS)
        found = tuple(_listener(name, text) for text in settings[keys.LISTENERS])
        if not found:
            raise ConfigError(f"it is empty; name at least one address such as http://:{DEFAULT_PORT}.", name)
        return found
    port = settings[keys.REST_PORT]
    host = _unquoted(settings[keys.REST_HOST_NAME]) or LOOPBACK
    if port is None:
        return (RestListener(host, DEFAULT_PORT),)
    return (RestListener(host, _checked_port(settings.written_as(keys.REST_PORT), port)),)


def file_listeners(raw: Mapping[str, str], resolver: Resolver) -> tuple[RestListener, ...]:
    """Return the listeners of a dedicated-mode file: none by default, since two files may run on one machine."""
    rows = (keys.LISTENERS, keys.REST_PORT, keys.REST_HOST_NAME)
    settings = Settings({row.name: resolver.resolve(row.name, raw[row.name]) for row in rows if row.name in raw})
    return rest_listeners(settings) if keys.LISTENERS in settings or keys.REST_PORT in settings else ()


def parse_listener(name: str, text: str) -> RestListener:
    """`PORT`, `HOST:PORT` or a URL, as on a command line; `name` is what it is given by."""
    if "://" in text:
        return _listener(name, text.strip())
    host, _colon, port = text.strip().rpartition(":")
    if not port.isdecimal():
        raise ConfigError(f"write it as PORT or HOST:PORT, such as {DEFAULT_PORT}.", f"{name} {text}")
    return RestListener(host.strip("[]") or LOOPBACK, _checked_port(name, int(port)))


def advertised_listener(settings: Settings, all_bound: Sequence[RestListener], own_host: str) -> RestListener:
    """Return the address for other workers: the file's, else where it is bound, else this machine's name.

    Of several listeners an https one is advertised, while Java advertises http: requests are forwarded to it.
    """
    bound = _advertised(settings, all_bound)
    host = _unquoted(settings[keys.REST_ADVERTISED_HOST_NAME]) or (own_host if bound.is_everywhere else bound.host)
    port = settings[keys.REST_ADVERTISED_PORT]
    if port is None:
        return bound._replace(host=host)
    return bound._replace(host=host, port=_checked_port(settings.written_as(keys.REST_ADVERTISED_PORT), port))


def _advertised(settings: Settings, bound: Sequence[RestListener]) -> RestListener:
    wanted = settings[keys.REST_ADVERTISED_LISTENER].lower()
    if not wanted:
        return next((listener for listener in bound if listener.is_https), bound[0])
    for listener in bound:
        if listener.url.startswith(f"{wanted}://"):
            return listener
    name = settings.written_as(keys.REST_ADVERTISED_LISTENER)
    raise ConfigError(f"there is no {wanted} listener; name one in `listeners`, or remove the key.", name)


def _listener(name: str, text: str) -> RestListener:
    not_an_address = ConfigError(
        f"'{text}' is not an address; write it as http://HOST:PORT or https://HOST:PORT, such as"
        f" http://:{DEFAULT_PORT}.",
        name,
    )
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise not_an_address from None
    if parts.scheme.lower() not in ("http", "https") or port is None or parts.path.strip("/") or parts.query:
        raise not_an_address
    return RestListener(host or LOOPBACK, port, parts.scheme.lower() == "https")


def _checked_port(name: str, port: int) -> int:
    if not 0 <= port <= _LARGEST_PORT:
        raise ConfigError(f"{port} is not a port; it must be between 0 and {_LARGEST_PORT}.", name)
    return port


def _unquoted(host: str) -> str:
    """A host without the quotes that container files often carry into the value."""
    return host.strip("\"'")


@dataclass(frozen=True, slots=True)
class RestAccess:
    """The requirements for callers."""

    client_auth: ClientAuth = "none"
    jaas_file: str = ""
    rules_file: str = ""
    advertised_host: str = ""
    allowed_hosts: frozenset[str] = frozenset()
    allowed_origins: frozenset[str] = frozenset()

    @property
    def knows_callers(self) -> bool:
        """Return whether a caller has a name, by a login or by a certificate."""
        return bool(self.jaas_file) or self.client_auth != "none"


def rest_access(
    raw: Mapping[str, str], resolver: Resolver, listeners: Sequence[RestListener], lookup: Lookup
) -> RestAccess:
    """Return what a file requires of callers of REST; raises ConfigError for a contradiction."""
    settings = _own_settings(raw, resolver)
    has_https = any(listener.is_https for listener in listeners)
    client_auth, jaas_file = try_both(
        lambda: _client_auth(https_settings(raw, resolver)) if has_https else _NO_AUTH,
        lambda: _jaas_file(settings, lookup) if _has_login(settings) else "",
    )
    access = RestAccess(
        client_auth,
        jaas_file,
        settings[keys.REST_RULES_FILE],
        settings[keys.REST_ADVERTISED_HOST_NAME].strip("\"'").lower().removesuffix("."),
        _allowed_hosts(settings),
        frozenset(origin.strip().lower() for origin in settings[keys.ACCESS_CONTROL_ALLOW_ORIGIN].split(",")) - {""},
    )
    if access.rules_file and not access.knows_callers:
        raise ConfigError(
            f"rules need callers with names; add"
            f" {keys.REST_EXTENSION_CLASSES.name}={_BASIC_AUTH_CLASS}, or https listeners with"
            f" {keys.SSL_CLIENT_AUTH.name}=required.",
            settings.written_as(keys.REST_RULES_FILE),
        )
    return access


def https_settings(raw: Mapping[str, str], resolver: Resolver) -> Settings:
    """The `ssl.*` of https listeners: those after the prefix if there are any, else those of the file."""
    prefixed = {key for key in raw if key.startswith(HTTPS_PREFIX)}
    prefix = HTTPS_PREFIX if prefixed else ""
    names = prefixed or {key for key in raw if key.startswith("ssl.")}
    values = {name.removeprefix(prefix): resolver.resolve(name, raw[name]) for name in names}
    before = {key: raw[prefix + key] for key, value in values.items() if raw[prefix + key] != value}
    return Settings({**values, "security.protocol": "SSL"}, prefix, raw=before)


def jaas_file_of(raw: Mapping[str, str], resolver: Resolver, lookup: Lookup) -> tuple[str, str]:
    """The JAAS file of the login, and the key by which it is asked for; empty where there is none."""
    settings = _own_settings(raw, resolver)
    if not settings[keys.REST_EXTENSION_CLASSES]:
        return "", ""
    given = settings[keys.REST_JAAS_CONFIG_FILE]
    row = keys.REST_JAAS_CONFIG_FILE if given else keys.REST_EXTENSION_CLASSES
    return row.name, given or _jaas_file_of_opts(lookup)


def _own_settings(raw: Mapping[str, str], resolver: Resolver) -> Settings:
    return Settings({row.name: resolver.resolve(row.name, raw[row.name]) for row in _OWN_KEYS if row.name in raw})


def _allowed_hosts(settings: Settings) -> frozenset[str]:
    found = [host.strip("[]").lower() for host in settings[keys.REST_ALLOWED_HOSTS]]
    for host in found:
        if _HOST.fullmatch(host) is None:
            raise ConfigError(
                f"'{host}' is not a host; write names or addresses"
                " without protocol and port, such as connect.example.org.",
                settings.written_as(keys.REST_ALLOWED_HOSTS),
            )
    return frozenset(found)


def jvm_property(name: str, lookup: Lookup) -> str | None:
    """A system property that `-D` in the variable `KAFKA_OPTS` sets for Kafka's JVM; None where it does not."""
    option = re.compile(rf"""(?:^|\s)["']?-D{re.escape(name)}==?("[^"]*"|'[^']*'|[^\s"']*)""")
    found = option.search(lookup.variable(_OPTS_VARIABLE) or "")
    return None if found is None else found[1].strip("\"'")


def _jaas_file_of_opts(lookup: Lookup) -> str:
    return jvm_property(_JAAS_PROPERTY, lookup) or ""


def _client_auth(tls: Settings) -> ClientAuth:
    found = tls[keys.SSL_CLIENT_AUTH]
    return "required" if found == "required" else "requested" if found == "requested" else "none"


def _has_login(settings: Settings) -> bool:
    classes = settings[keys.REST_EXTENSION_CLASSES]
    name = settings.written_as(keys.REST_EXTENSION_CLASSES)
    for class_name in classes:
        if class_name not in (_BASIC_AUTH_CLASS, _BASIC_AUTH):
            raise ConfigError(
                f"{class_name} is a Java class and cannot be loaded; only {_BASIC_AUTH_CLASS} is there."
                " If it kept strangers out, use that one; else remove it.",
                name,
            )
    return bool(classes)


def _jaas_file(settings: Settings, lookup: Lookup) -> str:
    found = settings[keys.REST_JAAS_CONFIG_FILE] or _jaas_file_of_opts(lookup)
    if not found:
        raise ConfigError(
            f"the login needs a JAAS file with a section"
            f" KafkaConnect; name it in {keys.REST_JAAS_CONFIG_FILE.name}, or by -Djava.security.auth.login.config in"
            f" the variable {_OPTS_VARIABLE}.",
            settings.written_as(keys.REST_EXTENSION_CLASSES),
        )
    return found
