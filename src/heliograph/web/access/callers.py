"""The identities of callers: users with passwords, subjects of certificates, and callers of forwarded requests.

As in Connect, if the login is on, every caller needs it, whatever certificate its client has shown, and the user is the
caller. Unlike Connect, which reads the file of users once, a changed file takes effect at once, and an empty file lets
nobody in; in Connect it lets everybody in.

A follower that forwards a request signs it, so that the leader need not see the caller's password, and could not see
his certificate. The signature is an HMAC with the workers' session key over method, target, caller, body, time and a
nonce, in one header. It is valid for 30 seconds and for one request: a worker remembers the nonces it has seen for that
long. So the clocks of two workers may differ by at most 30 seconds; the log reports a larger difference. The signature
is checked before the body is read, the digest of the body afterwards.

Invariant: a password is kept only while it is compared, it is never logged or returned, and the comparison takes the
same time for a wrong one as for a right one.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import re
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from cryptography import x509

from heliograph.config.resolve.jaas import login_modules
from heliograph.config.syntax.properties import as_map, parse_properties
from heliograph.errors import ConfigError
from heliograph.web.access.reloading import Renewed
from heliograph.web.error_responses import UNAUTHORIZED
from heliograph.web.repeated_warning import RepeatedWarning

if TYPE_CHECKING:
    from collections.abc import Sequence


_log = logging.getLogger(__name__)

HEADER = "x-heliograph-forwarded"
_SECTION = "KafkaConnect"
_MODULE = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
_FILE = "file"
_BLANKS = re.compile(r"(?<!\s)\s*+(?<!\\),\s*+")
_VALID_FOR_S = 30
_MOST_REMEMBERED = 100_000
_NONCE_BYTES = 16


class CallerIdentity(NamedTuple):
    """An authenticated caller."""

    kind: Literal["user", "certificate"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Users:
    """The users of a properties file, `name=password`, that a JAAS file names."""

    def __init__(self, jaas_file: str) -> None:
        self._passwords = _passwords(jaas_file)

    def principal(self, authorization: str | None) -> CallerIdentity:
        """Return the user whose name and password are in the header; raise the refusal (401) otherwise."""
        name, password = _credentials(authorization)
        expected = self._passwords.get().get(name)
        is_right = hmac.compare_digest((expected or "").encode(), password.encode())
        if expected is None or not is_right:
            raise UNAUTHORIZED.error()
        return CallerIdentity("user", name)


def subject_of(certificate: bytes) -> CallerIdentity:
    """Return the subject of a certificate (DER), as Kafka names principals: `CN=orders,O=Example`."""
    return CallerIdentity("certificate", x509.load_der_x509_certificate(certificate).subject.rfc4514_string())


def subject_written(text: str) -> CallerIdentity:
    """Return the subject that a text names, however its blanks are written; raise ValueError if it is none."""
    name = x509.Name.from_rfc4514_string(_BLANKS.sub(",", text.strip()))
    return CallerIdentity("certificate", name.rfc4514_string())


def _passwords(jaas_file: str) -> Renewed[dict[str, str]]:
    """Return the passwords by user, of the file that the JAAS file names."""
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


class Vouched(NamedTuple):
    """A caller that another worker has authenticated, and the digest of the body that it signed."""

    principal: CallerIdentity | None
    body_digest: str

    def check_body(self, body: bytes) -> None:
        """Raise if the body is not the one that was signed."""
        if not hmac.compare_digest(self.body_digest, _digest(body)):
            raise UNAUTHORIZED.error()


def sign(principal: CallerIdentity | None, method: str, target: str, body: bytes, key: bytes) -> str:
    """Return the value of the header."""
    nonce = secrets.token_hex(_NONCE_BYTES)
    content = json.dumps([principal and list(principal), _digest(body), int(time.time()), nonce]).encode()
    return f"{base64.b64encode(content).decode()}.{_signature(method, target, content, key)}"


class Forwards:
    """Verifies forwarded requests, each once; used on REST's event loop only."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._stale = RepeatedWarning(
            _log,
            "REST refuses a request that another worker forwarded: by this worker's clock it was signed %d s from now,"
            f" and {_VALID_FOR_S} s are allowed. Synchronize the clocks of the workers.",
        )

    def verify(self, header: str, method: str, target: str, keys: Sequence[bytes]) -> Vouched:
        """Return the caller; raise the refusal (401) unless a worker of the group has just signed this request."""
        encoded, _, signature = header.partition(".")
        try:
            content = base64.b64decode(encoded, validate=True)
        except ValueError:
            raise UNAUTHORIZED.error() from None
        expected = [_signature(method, target, content, key) for key in keys]
        if not any(hmac.compare_digest(each.encode(), signature.encode()) for each in expected):
            raise UNAUTHORIZED.error()
        try:
            principal, body_digest, signed_at, nonce = json.loads(content)
        except ValueError:  # signed by a worker of another version
            raise UNAUTHORIZED.error() from None
        self._check_first_use(nonce, signed_at)
        return Vouched(principal and CallerIdentity(*principal), body_digest)

    def _check_first_use(self, nonce: str, signed_at: int) -> None:
        now = time.time()
        if abs(now - signed_at) > _VALID_FOR_S:
            self._stale.log(signed_at - now)
            raise UNAUTHORIZED.error()
        while self._seen and next(iter(self._seen.values())) < now:
            del self._seen[next(iter(self._seen))]
        if nonce in self._seen or len(self._seen) >= _MOST_REMEMBERED:
            raise UNAUTHORIZED.error()
        self._seen[nonce] = signed_at + _VALID_FOR_S


def _signature(method: str, target: str, content: bytes, key: bytes) -> str:
    signed = b"\n".join((method.encode(), target.encode(), content))
    return hmac.new(key, signed, hashlib.sha256).hexdigest()


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
