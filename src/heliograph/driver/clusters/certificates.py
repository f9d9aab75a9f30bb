"""Reads when certificates end: those of this process, and those it trusts, as its clients and listeners name them.

Files are read in the background, at most every few minutes, since they are renewed while the process runs. Of a private
key nothing is kept. The certificates that the machine trusts for everybody are not among them.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from dataclasses import fields
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509

from heliograph.config.effective.rest_config import https_settings
from heliograph.config.resolve.overlays import ROLES
from heliograph.config.resolve.redaction import unexpected
from heliograph.errors import HeliographError
from heliograph.kafka.security.keystores import Stores, load_key_material
from heliograph.kafka.security.security_settings import make_security
from heliograph.status.process_snapshot import Certificate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.config.effective.rest_config import RestListener
    from heliograph.config.resolve.placeholders import Resolver
    from heliograph.config.resolve.settings import Settings
    from heliograph.kafka.security.connection_spec import Security
    from heliograph.model import Flow


log = logging.getLogger(__name__)

_INTERVAL_S = 300.0
_KNOWN_FOR_S = 3 * _INTERVAL_S
_OWN, _TRUSTED = "own", "trusted"
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_REST = "rest"


class NamedClient(NamedTuple):
    """A client of a cluster, by its alias, or the listeners of REST; `settings` resolves their placeholders anew."""

    place: str
    settings: Callable[[], Settings]


def clients_of(config: MirrorConfig, flows: Iterable[Flow]) -> Iterator[NamedClient]:
    """Yield every client of the flows of a file, or of a connector."""
    for flow in flows:
        for alias in flow:
            for role in ROLES:
                yield NamedClient(alias, partial(config.client, alias, role, flow))
        yield NamedClient(flow.target, partial(config.records_client, flow))


def listeners_of(
    raw: Mapping[str, str], resolver: Resolver, listeners: Iterable[RestListener]
) -> Iterator[NamedClient]:
    """Yield the settings of https listeners, if there is any."""
    if any(listener.is_https for listener in listeners):
        yield NamedClient(_REST, partial(https_settings, raw, resolver))


class Certificates:
    """The certificates of what `clients` returns, which is asked again each time."""

    def __init__(
        self,
        clients: Callable[[], Iterable[NamedClient]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clients = clients
        self._clock = clock
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._found: tuple[Certificate, ...] = ()
        self._found_at = -_KNOWN_FOR_S
        self._asked_at = -_INTERVAL_S

    def latest(self) -> tuple[Certificate, ...]:
        """Return what was read last, and start to read again if it is time; none if reading takes too long."""
        now = self._clock()
        with self._lock:
            is_reading = self._thread is not None and self._thread.is_alive()
            if not is_reading and now - self._asked_at >= _INTERVAL_S:
                self._asked_at = now
                self._thread = threading.Thread(target=self._read, name="certificates", daemon=True)
                self._thread.start()
            return self._found if now - self._found_at < _KNOWN_FOR_S else ()

    def _read(self) -> None:
        try:
            found = read_certificates(self._clients())
        except Exception as error:  # noqa: BLE001  (a configuration that is being changed; it is read again)
            log.debug("The certificates cannot be read: %s", unexpected(error))
            return
        with self._lock:
            self._found, self._found_at = found, self._clock()


def read_certificates(clients: Iterable[NamedClient]) -> tuple[Certificate, ...]:
    """Read the stores; one that cannot be read, or that a connector may not use, is left out, and so is a certificate
    that cannot be parsed.

    Of several certificates with one subject in a truststore the last to end counts, of several stores the first.
    """
    found: dict[tuple[str, str, str], float] = {}
    read: set[tuple[str, Stores]] = set()
    for place, settings in clients:
        try:
            stores = _stores_of(make_security(settings(), place))
            if (place, stores) in read:
                continue
            read.add((place, stores))
            material = load_key_material(stores)
        except (HeliographError, OSError, ValueError) as error:
            log.debug("No certificates of '%s': %s", place, unexpected(error))
            continue
        for role, pem in ((_OWN, material.chain_pem), (_TRUSTED, material.trusted_pem)):
            ends: dict[str, float] = {}
            for subject, end in _subjects_and_ends(pem, place):
                ends[subject] = max(end, ends.get(subject, end))
            for subject, end in ends.items():
                found[place, role, subject] = min(end, found.get((place, role, subject), end))
    return tuple(Certificate(*key, end) for key, end in sorted(found.items()))


def _subjects_and_ends(pem: bytes, place: str) -> Iterator[tuple[str, float]]:
    for one in _CERTIFICATE.findall(pem):
        try:
            certificate = x509.load_pem_x509_certificate(one)
            yield certificate.subject.rfc4514_string(), certificate.not_valid_after_utc.timestamp()
        except (ValueError, x509.InvalidVersion) as error:
            _log_unreadable(place, hashlib.sha256(one).hexdigest(), unexpected(error))


@lru_cache(maxsize=256)
def _log_unreadable(place: str, digest: str, reason: str) -> None:
    """Log it once, not at each reading."""
    log.warning("A certificate of '%s' (SHA-256 of its text %s) cannot be read: %s", place, digest[:16], reason)


def _stores_of(security: Security) -> Stores:
    """Return the stores alone, without the names of their keys, so that those of several clients are equal."""
    return Stores(**{each.name: getattr(security, each.name) for each in fields(Stores) if each.name != "written"})
