"""Who calls: a user with a password, as Connect's own login has it, or the subject of a client's certificate.

As in Connect, where the login is on it is asked of everyone, whatever certificate a client has shown, and the user is
the caller. Unlike Connect, whose first request reads the file of users for good, a changed file counts at once, and an
empty one lets nobody in; in Connect it lets everybody in.

Invariant: no password is kept longer than it takes to compare it, none is told, and comparing takes as long for a
wrong one as for a right one.
"""

from __future__ import annotations

import base64
import hmac
import re
from pathlib import Path
from typing import Literal, NamedTuple

from cryptography import x509

from heliograph.api.errors import UNAUTHORIZED
from heliograph.api.renewed import Renewed
from heliograph.config.jaas_file import login_modules
from heliograph.config.properties import as_map, parse_properties
from heliograph.errors import ConfigError

_SECTION = "KafkaConnect"
_MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
_FILE = "file"
_BLANKS = re.compile(r"(?<!\s)\s*+(?<!\\),\s*+")


class Principal(NamedTuple):
    """One who calls."""

    kind: Literal["user", "certificate"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Users:
    """The users of a properties file, `name=password`, that a JAAS file names."""

    def __init__(self, jaas_file: str) -> None:
        self._passwords = _passwords(jaas_file)

    def principal(self, authorization: str | None) -> Principal:
        """Whose name and password a request's header has; raises the refusal (401)."""
        name, password = _credentials(authorization)
        expected = self._passwords.get().get(name)
        is_right = hmac.compare_digest((expected or "").encode(), password.encode())
        if expected is None or not is_right:
            raise UNAUTHORIZED.error()
        return Principal("user", name)


def subject_of(certificate: bytes) -> Principal:
    """The subject of a certificate (DER), as Kafka names principals: `CN=orders,O=Example`."""
    return Principal("certificate", x509.load_der_x509_certificate(certificate).subject.rfc4514_string())


def subject_written(text: str) -> Principal:
    """The subject that a text names, however its blanks are written; raises ValueError for what is none."""
    name = x509.Name.from_rfc4514_string(_BLANKS.sub(",", text.strip()))
    return Principal("certificate", name.rfc4514_string())


def _passwords(jaas_file: str) -> Renewed[dict[str, str]]:
    """Passwords by user, of the file that the JAAS file names."""
    modules = login_modules(_read(jaas_file), _SECTION, jaas_file)
    others = [module.class_name for module in modules if module.class_name != _MODULE]
    if others or len(modules) != 1:
        found = f", not {', '.join(others)}" if others else ""
        raise ConfigError(f"{jaas_file}: the section {_SECTION} must have one login module, {_MODULE}{found}.")
    users_file = modules[0].options.get(_FILE, "")
    if not users_file:
        raise ConfigError(f"{jaas_file}: the login module lacks the option {_FILE}, which names the file of users.")
    return Renewed([users_file], lambda: as_map(parse_properties(_read(users_file))))


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: REST's login needs this file, and it cannot be read: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or "it is not text"


def _credentials(authorization: str | None) -> tuple[str, str]:
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        raise UNAUTHORIZED.error()
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError:
        raise UNAUTHORIZED.error() from None
    if not colon:
        raise UNAUTHORIZED.error()
    return name, password
