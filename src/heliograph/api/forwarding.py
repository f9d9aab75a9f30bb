"""A request that only the leading worker can answer, passed on to it as it came, and its answer passed back.

A forwarded request says `forward=false`: a worker that is asked so and does not lead either refuses, so no request can
go in circles while the lead changes hands.
"""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from heliograph.api.exchange import JSON_TYPE, Answer
from heliograph.worker.connect_errors import CANNOT_FORWARD

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

FORWARD = "forward"
_PASSED_HEADERS = ("accept", "content-type")


class Forwarded(NamedTuple):
    """The request to send: `target` is its path with the query, `caller` the headers that say who asks."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    caller: Mapping[str, str]


def forward(leader_url: str, request: Forwarded, timeout_s: float, tls: ssl.SSLContext | None) -> Answer:
    """The leader's answer to the request."""
    headers = {name: request.headers[name] for name in _PASSED_HEADERS if name in request.headers}
    connection = _connection(leader_url, timeout_s, tls)
    try:
        connection.request(request.method, request.target, request.body or None, {**headers, **request.caller})
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise CANNOT_FORWARD.error(reason=f"{leader_url} does not answer ({error})") from error
    finally:
        connection.close()
    location = response.getheader("location")
    content_type = response.getheader("content-type") or JSON_TYPE
    return Answer(response.status, body, content_type, urlsplit(location).path if location else None)


def _connection(leader_url: str, timeout_s: float, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    place = urlsplit(leader_url)
    host, port = place.hostname or "", place.port
    if place.scheme == "https":
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=tls)
    return http.client.HTTPConnection(host, port, timeout=timeout_s)


def once(target: str) -> str:
    """The target of a request that must not be passed on any further."""
    return f"{target}{'&' if '?' in target else '?'}{FORWARD}=false"
