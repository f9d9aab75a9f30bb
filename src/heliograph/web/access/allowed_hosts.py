"""The hosts and origins that a request may name, so that foreign web pages cannot call REST through a browser.

A page on evil.example can have its own name resolve to 127.0.0.1 (DNS rebinding). The browser then takes the worker for
evil.example and sends that name as `Host`, so a listener that only this machine reaches answers known names only. A
page can also call the worker's real address; the browser then sends the page's `Origin`. An origin is the worker's own
only if its host is known: after DNS rebinding `Origin` and `Host` agree, and both are hostile.

An IP address as `Host` needs no DNS and cannot be rebound.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import TYPE_CHECKING, NamedTuple

from heliograph.web.error_responses import FOREIGN_ORIGIN, UNKNOWN_HOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from heliograph.config.effective.rest_config import RestAccess


_LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"same-origin", "none"})
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]{2,45})\]|([^\[\]:/?#@\\\s,]{1,255}))(?::[0-9]{0,5})?")


class ListenerAddress(NamedTuple):
    """The listener of a request: its host as the file names it, and whether only this machine reaches it."""

    host: str = "localhost"
    is_loopback: bool = True


class Hosts:
    """The host names of one worker, as its file gives them."""

    def __init__(self, access: RestAccess) -> None:
        self._allowed = access.allowed_hosts
        self._origins = access.allowed_origins
        self._local = _LOOPBACK_HOSTS | access.allowed_hosts | ({access.advertised_host} - {""})
        self._own_name = socket.gethostname().lower()

    def check(self, method: str, headers: Mapping[str, str], listener: ListenerAddress) -> None:
        """Raise the refusal of a request that names an unknown host, or that changes something for another origin."""
        host = headers.get("host")
        is_strict = listener.is_loopback or bool(self._allowed)
        if host is not None and is_strict and not self.is_known(host, listener):
            raise UNKNOWN_HOST.error()
        if method not in _READING and not self._is_allowed_origin(headers.get("origin", "").lower()):
            self._check_origin(headers, listener)

    def is_known(self, authority: str, listener: ListenerAddress) -> bool:
        """Return whether a host is one of this worker's; its port does not matter, since ports are forwarded."""
        host = _host_of(authority)
        if host is None:
            return False
        if host in self._local or host == listener.host.lower():
            return True
        return not listener.is_loopback and (host == self._own_name or _is_address(host))

    def _is_allowed_origin(self, origin: str) -> bool:
        return origin in self._origins or ("*" in self._origins and origin not in ("", "null"))

    def _check_origin(self, headers: Mapping[str, str], listener: ListenerAddress) -> None:
        if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
            raise FOREIGN_ORIGIN.error()
        origin, authority = headers.get("origin"), headers.get("host", "").lower()
        if origin is None:
            return
        # A proxy before the worker may end TLS, so the protocol is not compared.
        is_own = origin.lower() in (f"http://{authority}", f"https://{authority}")
        if not is_own or not self.is_known(authority, listener):
            raise FOREIGN_ORIGIN.error()


def _host_of(authority: str) -> str | None:
    found = _AUTHORITY.fullmatch(authority.lower())
    return None if found is None else (found[1] or found[2]).removesuffix(".")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
